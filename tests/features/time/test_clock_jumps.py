"""A clock that jumps, either way: definitions, the past by time, views that start at a time, and idle sources."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from rejoinder.errors import StorageFailed
from rejoinder.testing import Driver

START = 1_800_000_000_000
SECOND, HOUR = 1000, 3_600_000
YEARS = 315_360_000_000


class Clocked:
    """A driver on the clock of the machine, which the test sets. Another clock, that nobody sets, goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.steady = START, 5000
        module = "rejoinder.engine.time.processing_time"
        monkeypatch.setattr(f"{module}.time.time_ns", lambda: self.wall * 1_000_000)
        monkeypatch.setattr(f"{module}.time.clock_gettime_ns", lambda _: self.steady * 1_000_000)
        self.driver = Driver()
        self.driver.sql(
            "CREATE STREAM t (k BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)"
            " OPTIONS (partition_by 'k', idle_after '1 hour') RETAIN ALL;"
            "CREATE VIEW v AS SELECT COUNT(*) AS n FROM t"
        )

    def step(self, elapsed: int, *, jump: int = 0, k: int = 0) -> int:
        """Let time pass, set the clock, and run an epoch with a row; gives its processing time."""
        self.wall += elapsed + jump
        self.steady += elapsed
        self.driver.insert("t", {"k": k, "ts": f"2026-01-01 00:00:{self.driver.epoch + 1:02d}"})
        self.driver.step()
        return self.time_ms

    @property
    def time_ms(self) -> int:
        manifest = self.driver._engine.version.manifest
        assert manifest is not None
        return manifest.time_ms


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch) -> Clocked:
    return Clocked(monkeypatch)


def counts(rows: list[dict[str, Any]]) -> list[int]:
    return [row["n"] for row in rows]


@pytest.mark.parametrize("jump", [YEARS, -YEARS])
def test_a_definition_believes_no_more_than_an_epoch(clocked: Clocked, jump: int) -> None:
    clocked.step(0)
    clocked.wall += jump
    clocked.steady += SECOND
    clocked.driver.sql("CREATE VIEW w AS SELECT k FROM t")
    assert START <= clocked.time_ms <= START + SECOND
    assert START <= clocked.step(SECOND, jump=-jump) <= START + 3 * SECOND


@pytest.mark.parametrize("jump", [YEARS, -YEARS, HOUR // 2, -HOUR // 2])
def test_the_past_is_found_by_time_across_a_jump(clocked: Clocked, jump: int) -> None:
    times = [clocked.step(10 * SECOND) for _ in range(3)]
    times += [clocked.step(10 * SECOND, jump=jump), *(clocked.step(10 * SECOND) for _ in range(3))]
    times += [clocked.step(10 * SECOND, jump=-jump), *(clocked.step(10 * SECOND) for _ in range(3))]
    assert times == sorted(times) and times[-1] - times[0] <= abs(jump) % YEARS + 200 * SECOND
    for epoch, at in enumerate(times):
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=at)
        last = max(number for number, each in enumerate(times) if each == at)
        assert counts(clocked.driver.table("v", as_of=moment)) == [last + 1]
        assert counts(clocked.driver.table("v", as_of=epoch)) == [epoch + 1]


@pytest.mark.parametrize("jump", [YEARS, -YEARS])
def test_a_view_that_starts_at_a_time_does_not_go_by_the_clock(clocked: Clocked, jump: int) -> None:
    for _ in range(5):
        clocked.step(SECOND)
    clocked.wall += jump
    clocked.driver.sql(
        "CREATE VIEW late STARTING AT TIMESTAMP '2026-01-01 00:00:03' AS SELECT COUNT(*) AS n FROM t;"
        "CREATE VIEW now STARTING AT NOW AS SELECT COUNT(*) AS n FROM t"
    )
    clocked.step(SECOND, jump=-jump)
    assert counts(clocked.driver.table("late")) == counts(clocked.driver.table("now")) == [6], "all rows are retained"


def idle(clocked: Clocked) -> list[int]:
    """The partitions that are idle."""
    rows = clocked.driver.sql("SHOW WATERMARKS")
    return [row["partition"] for row in rows if row["source"] == "t" and row["idle_since"] is not None]


def test_a_jump_ahead_makes_no_partition_idle(clocked: Clocked) -> None:
    clocked.step(0, k=0)
    clocked.step(0, k=1)
    clocked.step(SECOND, jump=YEARS, k=1)
    assert any("jumped ahead" in notice for notice in clocked.driver._engine.progress[-1].notices)
    assert idle(clocked) == []
    clocked.step(2 * HOUR, jump=-YEARS, k=1)
    assert clocked.driver._engine.progress[-1].notices == () and idle(clocked) == [0]


def test_a_clock_that_is_set_back_does_not_keep_a_partition_from_becoming_idle(clocked: Clocked) -> None:
    clocked.step(0, k=0)
    clocked.step(0, jump=-YEARS, k=1)
    assert "behind the last epoch" in clocked.driver._engine.progress[-1].notices[0] and idle(clocked) == []
    before = clocked.time_ms
    clocked.step(2 * HOUR, k=1)
    assert clocked.time_ms - before == 2 * HOUR * 9 // 10 and idle(clocked) == [0]


def fail(clocked: Clocked, monkeypatch: pytest.MonkeyPatch, elapsed: int, *, jump: int = 0) -> None:
    """Run an epoch that fails before its commit."""

    def failing(*_: object) -> None:
        raise StorageFailed("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(clocked.driver._engine.executor, "run", failing)
        with pytest.raises(StorageFailed):
            clocked.step(elapsed, jump=jump)


@pytest.mark.parametrize("jump", [YEARS, 2 * HOUR])
def test_a_jump_after_an_epoch_that_failed_is_not_believed(
    clocked: Clocked, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    clocked.step(0)
    fail(clocked, monkeypatch, 10 * SECOND)
    assert clocked.step(10 * SECOND, jump=jump) == START + 20 * SECOND


def test_silence_does_not_count_from_a_time_that_only_a_failed_epoch_believed(
    clocked: Clocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first epoch of a process believes its clock. If it fails, and the clock is corrected, nothing is left."""
    fail(clocked, monkeypatch, 0, jump=YEARS)
    assert clocked.step(SECOND, jump=-YEARS) == START + SECOND
    clocked.step(2 * HOUR, k=1)
    assert clocked.driver._engine.started == START + SECOND
    [idle] = [row for row in clocked.driver.sql("SHOW WATERMARKS") if row["idle_since"]]
    assert idle["partition"] == 0

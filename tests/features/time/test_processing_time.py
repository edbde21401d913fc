"""One wrong reading of the clock neither stops nor spoils what is emitted by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.engine.time.processing_time import BOUND, CONFIRMED, STILL, ProcessingTime, Reading
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.testing import Driver

START = 1_800_000_000_000
YEARS = 315_360_000_000
SECOND, MINUTE = 1000, 60_000


class World:
    """A clock that can be set, a clock that cannot, and a store's clock if there is one."""

    def __init__(self, *, has_store: bool = False) -> None:
        self.wall, self.steady, self.store = START, 5_000, START if has_store else None
        self.latest = 0
        self.time = self.opened(None)

    def opened(self, known: int | None) -> ProcessingTime:
        opened = ProcessingTime(lambda: self.wall, lambda: self.steady, lambda: self.store)
        opened.wall = known
        return opened

    def open(self) -> None:
        """Begin a new process."""
        self.time = self.opened(self.time.wall)

    @property
    def notice(self) -> str:
        return self.time.notice or ""

    def epoch(self, elapsed: int, *, set_by: int = 0) -> int:
        """Let time go by, set the clock, and run an epoch; how much later its time is than the one before."""
        reading = self._read(elapsed, set_by)
        self.time.accept(reading)
        before, self.latest = self.latest, reading.now
        return self.latest - before

    def fail(self, elapsed: int, *, set_by: int = 0) -> int:
        """The same for an epoch that fails: nothing is committed."""
        return self._read(elapsed, set_by).now - self.latest

    def _read(self, elapsed: int, set_by: int) -> Reading:
        self.wall += elapsed + set_by
        self.steady += elapsed
        self.store = None if self.store is None else self.store + elapsed
        return self.time.read(self.latest)


def test_a_clock_that_goes_on_is_believed() -> None:
    world = World()
    assert world.epoch(0) == START
    assert [world.epoch(each) for each in (1, 15 * SECOND, 10 * MINUTE, 30 * BOUND)] == [1, 15000, 600000, 30 * BOUND]
    assert not world.notice


def test_a_jump_ahead_is_not_believed_at_once() -> None:
    world = World()
    world.epoch(0)
    assert world.epoch(10 * SECOND, set_by=YEARS) == 10 * SECOND
    assert "jumped ahead by 3650 days" in world.notice
    assert world.epoch(10 * SECOND) == 10 * SECOND
    assert world.epoch(10 * SECOND, set_by=-YEARS) == 10 * SECOND
    assert not world.notice and world.latest == world.wall


def test_a_jump_that_lasts_is_believed() -> None:
    world = World()
    world.epoch(0)
    world.epoch(SECOND, set_by=YEARS)
    assert [world.epoch(MINUTE) for _ in range(CONFIRMED // MINUTE - 1)] == [MINUTE] * (CONFIRMED // MINUTE - 1)
    assert world.epoch(MINUTE) > YEARS and world.latest == world.wall


def test_another_process_believes_its_clock() -> None:
    world = World()
    world.epoch(0)
    world.open()
    assert world.epoch(YEARS) == YEARS


def test_a_small_jump_is_believed_and_does_not_stop_time_when_it_is_taken_back() -> None:
    world = World()
    world.epoch(0)
    assert world.epoch(SECOND, set_by=BOUND) == BOUND + SECOND
    assert world.epoch(SECOND, set_by=-BOUND) == 900
    assert "behind the last epoch" in world.notice
    assert world.epoch(10 * SECOND) == 9 * SECOND
    while world.notice:
        world.epoch(10 * MINUTE)
    assert 0 <= world.latest - world.wall <= STILL
    world.epoch(10 * MINUTE)
    assert world.latest == world.wall


def test_time_goes_on_in_small_steps_too() -> None:
    world = World()
    world.epoch(0)
    world.epoch(SECOND, set_by=BOUND)
    world.epoch(0, set_by=-BOUND)
    before = world.latest
    for _ in range(1000):
        world.epoch(1)
    assert 900 <= world.latest - before <= 1000


def test_a_clock_that_is_set_back_a_little_stands_still() -> None:
    world = World()
    world.epoch(0)
    assert [world.epoch(10 * SECOND, set_by=-STILL), *(world.epoch(10 * SECOND) for _ in range(4))] == [0] * 5
    assert world.epoch(10 * SECOND) == 0 and world.epoch(10 * SECOND) == 10 * SECOND
    assert not world.notice


def test_a_recorded_time_that_is_years_ahead_does_not_stop_the_flow() -> None:
    """Each process runs one epoch, as from cron: the clock of the last epoch tells what has elapsed."""
    world = World()
    world.wall += YEARS
    world.epoch(0)
    world.wall -= YEARS
    steps = []
    for _ in range(4):
        world.open()
        steps.append(world.epoch(10 * SECOND))
    assert steps == [0, 9000, 9000, 9000]


@pytest.mark.parametrize("set_by", [YEARS, 2 * BOUND])
def test_the_time_of_the_store_decides(set_by: int) -> None:
    world = World(has_store=True)
    world.epoch(0)
    assert world.epoch(10 * SECOND, set_by=set_by) == 10 * SECOND
    assert "ahead of the clock of the store" in world.notice
    world.open()
    assert world.epoch(10 * SECOND) == 10 * SECOND
    assert world.epoch(10 * SECOND, set_by=-set_by) == 10 * SECOND and not world.notice


def test_a_machine_that_was_stopped_is_believed_if_the_store_says_so() -> None:
    world = World(has_store=True)
    world.epoch(0)
    assert world.store is not None
    world.store += 5 * BOUND
    assert world.epoch(SECOND, set_by=5 * BOUND) == 5 * BOUND + SECOND


@pytest.mark.parametrize("is_failing", [False, True])
def test_a_jump_is_not_believed_after_an_epoch_that_failed(is_failing: bool) -> None:
    world = World()
    world.epoch(0)
    if is_failing:
        assert world.fail(10 * SECOND) == 10 * SECOND
    assert world.epoch(10 * SECOND, set_by=YEARS) == (20 if is_failing else 10) * SECOND
    assert "jumped ahead" in world.notice


def test_a_jump_that_only_failed_epochs_saw_leaves_nothing_behind() -> None:
    world = World()
    world.epoch(0)
    assert world.fail(10 * SECOND, set_by=YEARS) == 10 * SECOND
    assert world.epoch(10 * SECOND, set_by=-YEARS) == 20 * SECOND
    assert not world.notice and world.latest == world.wall


def test_a_jump_that_lasts_is_believed_although_an_epoch_fails_with_it() -> None:
    world = World()
    world.epoch(0)
    world.epoch(SECOND, set_by=YEARS)
    assert world.fail(CONFIRMED) > YEARS
    world.time.now(world.latest)
    assert world.epoch(SECOND) > YEARS and world.latest == world.wall


def test_time_goes_on_over_epochs_that_fail() -> None:
    world = World()
    world.epoch(0)
    world.epoch(SECOND, set_by=BOUND)
    world.epoch(SECOND, set_by=-BOUND)
    for _ in range(3):
        world.fail(10 * SECOND)
    assert world.epoch(10 * SECOND) == 36 * SECOND
    world.open()
    assert world.fail(10 * SECOND) == 9 * SECOND
    assert world.epoch(10 * SECOND) == 18 * SECOND


def test_the_store_decides_after_an_epoch_that_failed() -> None:
    world = World(has_store=True)
    world.epoch(0)
    assert world.fail(10 * SECOND, set_by=YEARS) == 10 * SECOND
    assert world.epoch(10 * SECOND) == 20 * SECOND
    assert world.fail(10 * SECOND, set_by=-YEARS) == 10 * SECOND
    assert world.epoch(10 * SECOND) == 20 * SECOND and not world.notice


def test_a_store_has_a_clock(disk_store: ObjectStore, s3_store: ObjectStore) -> None:
    import time

    assert disk_store.time_ms() is None
    theirs = s3_store.time_ms()
    assert theirs is not None and abs(theirs / 1000 - time.time()) < 60


@pytest.fixture
def disk_store(tmp_path: Path) -> ObjectStore:
    from rejoinder.store.objects.object_store import open_store

    return open_store(str(tmp_path / "state"))


def counting(monkeypatch: pytest.MonkeyPatch, place: Path | None = None) -> tuple[Driver, list[int]]:
    now = [START + 3 * SECOND]
    monkeypatch.setattr("rejoinder.engine.time.processing_time.time.time_ns", lambda: now[0] * 1_000_000)
    driver = Driver(store=place)
    if driver.epoch < 0:
        driver.sql("CREATE STREAM t (a BIGINT)")
        driver.sql("CREATE VIEW e AS SELECT COUNT(*) AS n FROM t EMIT EVERY INTERVAL 10 SECONDS")
    return driver, now


def go(driver: Driver, now: list[int], milliseconds: int) -> int:
    now[0] += milliseconds
    driver.insert("t", {"a": 1})
    driver.step()
    count: int = driver.table("e")[0]["n"] if driver.table("e") else -1
    return count


def test_one_jump_does_not_stop_emission(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, now = counting(monkeypatch)
    assert [go(driver, now, 15 * SECOND) for _ in range(4)] == [0, 1, 2, 3]
    go(driver, now, 2 * SECOND + YEARS)
    assert any("jumped ahead" in notice for notice in driver._engine.progress[-1].notices)
    rows = driver.sql("SHOW WATERMARKS")
    assert [(row["source"], row["blocks"]) for row in rows] == [("(clock)", ["e"])]
    # Ticks are at tenths of a second: an epoch each 15 seconds emits what all but the last one brought, or all.
    counts = [go(driver, now, each) for each in (15 * SECOND - YEARS, 15 * SECOND, 15 * SECOND)]
    assert counts[0] >= 5 and counts[1] >= 6 and counts[2] >= 7
    assert driver.sql("SHOW WATERMARKS") == [] and driver._engine.progress[-1].notices == ()
    left = driver._engine.seconds_to_tick()
    assert left is None or left <= 10


def test_a_state_whose_last_epoch_is_ten_years_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, now = counting(monkeypatch, tmp_path / "state")
    go(driver, now, YEARS)
    counts = []
    now[0] -= YEARS
    for _ in range(4):  # a process for each
        driver = Driver(store=tmp_path / "state")
        counts.append(go(driver, now, 15 * SECOND))
    assert counts[1] >= 1 and counts[2] >= 2 and counts[3] >= 3
    times = [row["_emit_time"] for row in driver.stream("e") if row["_emit_time"]]
    assert times and times == sorted(times)


def test_times_that_a_test_gives_are_believed() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (a BIGINT)")
    driver.sql("CREATE VIEW e AS SELECT COUNT(*) AS n FROM t EMIT EVERY INTERVAL 10 SECONDS")
    for at in (0, 5 * YEARS, 15 * SECOND):
        driver.insert("t", {"a": 1})
        driver.step(at=at)
    counts = []
    for at in (30 * SECOND, 45 * SECOND):
        driver.insert("t", {"a": 1})
        driver.step(at=at)
        counts.append(driver.table("e")[0]["n"])
    assert counts[-1] >= 3

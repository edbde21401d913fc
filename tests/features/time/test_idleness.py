"""Idle by silence: a timeout on the clock of the epochs, and when an epoch without input has to come for it."""

from __future__ import annotations

from typing import Any

from rejoinder.testing import Driver
from tests.kit import flow

MINUTE = 60_000


def stream_flow(options: str = "partition_by 'p', idle_after 'INTERVAL 60 SECONDS'", **more: Any) -> Driver:
    stream = f"CREATE STREAM s (id INT, t BIGINT, p INT, WATERMARK t DELAY OF 0) OPTIONS ({options})"
    return flow(stream, "SELECT id FROM s EMIT WHEN WATERMARK PAST t", **more)


def put(driver: Driver, at: int, *rows: tuple[int, int]) -> list[int]:
    """A step at a time in milliseconds, with rows (partition, time); the emitted ids, which are times."""
    driver.insert("s", *({"id": time, "t": time, "p": partition} for partition, time in rows))
    return sorted(row["id"] for row, _ in driver.step(at)["v"])


def test_a_silent_partition_is_idle_after_the_timeout_and_not_before() -> None:
    driver = stream_flow()
    put(driver, 1_000, (0, 10), (1, 5))
    assert put(driver, 1_000 + MINUTE - 1, (0, 20)) == [], "59.999 seconds"
    assert put(driver, 1_000 + MINUTE) == [5, 10], "the epoch of the timeout lets out"
    assert driver._engine.version.watermarks.of("s", "t") == 20
    (idle,) = [each for each in driver._engine.version.watermarks.sources["s"]["inputs"] if each["idle"]]
    assert (idle["input"], idle["idle_since"]) == (1, 1_000 + MINUTE)
    put(driver, 1_000 + MINUTE + 1, (0, 30))
    (idle,) = [each for each in driver._engine.version.watermarks.sources["s"]["inputs"] if each["idle"]]
    assert idle["idle_since"] == 1_000 + MINUTE, "since then"


def test_rows_bring_it_back_and_nothing_goes_back() -> None:
    driver = stream_flow()
    put(driver, 0, (0, 10), (1, 5))
    assert put(driver, MINUTE, (0, 30)) == [5, 10]
    assert put(driver, MINUTE + 1, (1, 35), (0, 40)) == [30], "as far as partition 1"
    assert put(driver, MINUTE + 2, (0, 50)) == [] and driver._engine.version.watermarks.of("s", "t") == 35
    assert put(driver, 2 * MINUTE + 1) == [35, 40], "silent again, since it came back"


def test_declared_partitions_hold_until_the_timeout() -> None:
    driver = stream_flow("partition_by 'p', partitions '3', idle_after '1 minute'")
    put(driver, 0, (0, 10), (1, 20))
    assert put(driver, MINUTE - 1, (0, 11), (1, 21)) == []
    assert put(driver, MINUTE) == [10]
    put(driver, MINUTE + 1, (2, 12))
    assert put(driver, MINUTE + 2, (0, 30), (1, 30)) == [11]


def test_silence_of_a_flow_that_was_down_is_not_silence_of_its_sources() -> None:
    driver = stream_flow()
    put(driver, 0, (0, 10), (1, 5))
    driver.restart()
    assert put(driver, 60 * MINUTE, (0, 20)) == [], "partition 1 may have a backlog: it is given its time"
    assert put(driver, 61 * MINUTE - 1, (0, 21)) == []
    assert put(driver, 61 * MINUTE) == [5, 10, 20]
    driver.restart()
    put(driver, 62 * MINUTE, (0, 30))
    assert driver._engine.version.watermarks.of("s", "t") == 30, "what is idle stays so"


def test_without_a_timeout_silence_means_nothing() -> None:
    driver = stream_flow("partition_by 'p'")
    put(driver, 0, (0, 10), (1, 5))
    assert put(driver, 1_000 * MINUTE, (0, 20)) == []
    assert driver._engine.seconds_to_tick() is None and not driver._engine.is_ticking


def test_an_epoch_without_input_comes_when_a_timeout_ends() -> None:
    driver = stream_flow()
    engine, now = driver._engine, [1_000]
    engine.clock = lambda: now[0]
    assert engine.is_ticking and engine.seconds_to_tick() is None, "nothing has been seen"
    put(driver, 1_000, (0, 10), (1, 5))
    now[0] = 31_000
    put(driver, 31_000, (0, 20))
    assert engine.seconds_to_tick() == 30.0, "for partition 1"
    now[0] = 61_000
    assert engine.seconds_to_tick() == 0
    put(driver, 61_000)
    assert engine.seconds_to_tick() == 30.0, "for partition 0"
    put(driver, 91_000)
    assert engine.seconds_to_tick() is None, "all are idle"


def test_what_is_said_makes_an_epoch_at_once_and_is_taken_in_by_it() -> None:
    driver = stream_flow("partition_by 'p'")
    engine = driver._engine
    put(driver, 0, (0, 10), (1, 5))
    (source,) = engine.version.catalog.sources
    engine.mark_idle(source, 1)
    assert (engine.is_ticking, engine.seconds_to_tick()) == (True, 0)
    assert put(driver, 1, (0, 20)) == [5, 10]
    assert (engine.is_ticking, engine.seconds_to_tick()) == (False, None)
    engine.mark_idle(source, None)
    put(driver, 2)
    assert engine.version.watermarks.is_idle("s")

"""Explicit watermarks: an invalid one is refused at once, a valid one applies when all earlier input has been read."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from rejoinder.errors import InputError, MissingInput, WatermarkRegress
from rejoinder.ir.catalog import Source
from rejoinder.state.watermarks import Signals
from rejoinder.testing import Driver
from tests.kit import flow


def stream_flow(columns: str = "t BIGINT, WATERMARK t", options: str = "late 'keep'") -> Driver:
    return flow(f"CREATE STREAM s (id INT, p STRING, {columns}) OPTIONS ({options})", "SELECT * FROM s")


def source(driver: Driver) -> Source:
    return driver._engine.version.plan.program.sources["s"]


def never(source: str, epoch: int) -> bool:
    return False


@pytest.mark.parametrize(
    ("columns", "time", "detail"),
    [
        ("t BIGINT, WATERMARK t", "noon", "Could not convert 'noon'"),
        ("t BIGINT, WATERMARK t", 1.5, "1.5 is not an integer"),
        ("t BIGINT, WATERMARK t", None, "NoneType"),
        ("t BIGINT, WATERMARK t", datetime(2026, 1, 1), "tried to convert to int64"),
        ("t BIGINT, WATERMARK t", 1 << 62, "is not a time"),
        ("t INT, WATERMARK t", 1 << 40, "too large"),
        ("t TIMESTAMP, WATERMARK t", 5, "of type int"),
        ("t TIMESTAMP, WATERMARK t", "12 o'clock", "Invalid isoformat"),
        ("t DATE, WATERMARK t", None, "NoneType"),
    ],
)
def test_what_is_no_time_of_the_column_is_refused(columns: str, time: Any, detail: str) -> None:
    driver = stream_flow(columns)
    with pytest.raises(InputError, match=r"is not a watermark of `s`\.`t`") as refused:
        driver.watermark("s", time)
    assert detail in str(refused.value.detail) and refused.value.hint
    driver.step()
    assert driver._engine.version.watermarks.of("s", "t") is None


def test_times_are_shown_as_they_are_written() -> None:
    driver = stream_flow("t TIMESTAMP, d DATE, WATERMARK t, WATERMARK d")
    noon = datetime(2026, 1, 1, 12)
    for at, time in enumerate(
        ["2026-01-01 12:00", noon + timedelta(hours=1), noon.replace(hour=14, tzinfo=timezone.utc)]
    ):
        driver.watermark("s", time, "T")
        driver.watermark("s", date(2026, 1, 2 + at), "d")
    driver.step()
    assert {row["column"]: row["watermark"] for row in driver.sql("SHOW WATERMARKS")} == {
        "t": noon + timedelta(hours=2),
        "d": date(2026, 1, 4),
    }
    with pytest.raises(InputError, match="more than one event-time column"):
        driver.watermark("s", noon)
    with pytest.raises(InputError, match="`day` is not an event-time column of `s`"):
        driver.watermark("s", noon, "day")


def test_it_is_about_all_partitions_unless_one_is_named() -> None:
    driver = stream_flow(options="partition_by 'p'")
    with pytest.raises(MissingInput, match="no partition of `s` is known yet"):
        driver.watermark("s", 10)
    driver.insert("s", {"id": 1, "p": "eu", "t": 5}, {"id": 2, "p": "us", "t": 6})
    driver.step()
    driver.watermark("s", 10)
    driver.step()
    assert driver._engine.version.watermarks.of("s", "t") == 10
    driver.watermark("s", 30, partition="eu")
    with pytest.raises(WatermarkRegress, match="does not rise") as refused:
        driver.watermark("s", 20)
    assert "partition 'eu' got 20 after 30" in str(refused.value)
    driver.step()
    assert driver._engine.version.watermarks.of("s", "t") == 10, "of a watermark that is refused, nothing is taken in"


def test_a_pending_watermark_counts_when_earlier_rows_are_read() -> None:
    driver = stream_flow()
    engine = driver._engine
    engine.add_watermark(source(driver), "t", 10, None, is_running=True)
    assert engine.pending_watermarks.due(lambda name, epoch: (name, epoch) != ("s", 1)) == {}, (
        "epoch 0 may be planned already"
    )
    assert (engine.is_ticking, engine.seconds_to_tick()) == (True, 0), "an epoch comes for it"
    engine.add_watermark(source(driver), "t", 20, None, is_running=False)
    assert engine.pending_watermarks.due(lambda name, epoch: epoch == 0) == {"s": {0: {"t": 20}}}
    engine.pending_watermarks.mark_read(engine.pending_watermarks.entries[:1])
    assert engine.pending_watermarks.due(never) == {"s": {0: {"t": 10}}}
    engine.run_epoch(0, [], signals=Signals(engine.pending_watermarks.due(never)))
    assert engine.version.watermarks.of("s", "t") == 10
    assert [each.value for each in engine.pending_watermarks.entries] == [20] and engine.seconds_to_tick() == 0
    engine.run_epoch(1, [], signals=Signals(engine.pending_watermarks.due(lambda name, epoch: True)))
    assert engine.version.watermarks.of("s", "t") == 20 and engine.seconds_to_tick() is None


def test_files_that_are_read_in_order_show_that_all_is_read() -> None:
    driver = stream_flow()
    pending = driver._engine.pending_watermarks
    for value, newest in ((10, 5), (20, 8)):
        driver._engine.add_watermark(source(driver), "t", value, None, is_running=True, newest=newest)
    for read, due in (({"r": 9}, None), ({"s": 4}, None), ({"s": 7}, 10), ({"s": 8}, 20)):
        pending.mark_read_up_to(read)
        assert pending.due(never) == ({} if due is None else {"s": {0: {"t": due}}}), read


def test_a_pending_watermark_rises_above_earlier_ones_and_is_dropped_with_its_source() -> None:
    driver = stream_flow()
    engine = driver._engine
    engine.add_watermark(source(driver), "t", 10, None, is_running=True)
    for value in (10, 9):
        with pytest.raises(WatermarkRegress, match="does not rise"):
            engine.add_watermark(source(driver), "t", value, 0, is_running=True)
    with pytest.raises(MissingInput, match="no partition 7"):
        engine.add_watermark(source(driver), "t", 11, 7, range(3), is_running=True)
    engine.run_epoch(0, [], signals=Signals({"s": {0: {"t": 15}}}))
    assert engine.pending_watermarks.entries == [], "a higher explicit watermark covers it"
    with pytest.raises(WatermarkRegress):
        engine.run_epoch(1, [], signals=Signals({"s": {0: {"t": 15}}}))
    assert engine.epoch == 0
    engine.add_watermark(source(driver), "t", 20, None, is_running=True)
    driver.sql("DROP VIEW v; DROP STREAM s")
    assert engine.pending_watermarks.entries == []


def test_what_was_said_of_a_source_is_not_said_of_a_later_one() -> None:
    """One that is created with the statement that drops the first; by the engine, as on Spark, and by the driver."""
    driver = Driver()
    text = "CREATE STREAM t (a BIGINT, WATERMARK a); CREATE VIEW v AS SELECT a FROM t EMIT WHEN WATERMARK PAST a"
    driver.sql(text)
    engine = driver._engine
    driver.insert("t", {"a": 1})
    driver.step()
    engine.add_watermark(driver._source("t"), "a", 100, None, is_running=False)
    engine.mark_idle(driver._source("t"), None)
    driver.watermark("t", 100)
    driver.sql(f"DROP STREAM t CASCADE; {text}")
    assert not engine.has_pending_signals
    driver.insert("t", {"a": 2})
    assert driver.step() == {"v": []}, "no watermark has passed it"

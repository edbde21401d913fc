"""Unusable event times: NULL, or in the far future; rows retracted too late. Stored and counted, never lost."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from rejoinder.testing import Driver
from tests.kit import flow

NOW = datetime(2026, 1, 1, 12)
COLUMNS = "id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE"
PAST = "CREATE VIEW v AS SELECT id FROM s EMIT WHEN WATERMARK PAST ts"


def stream_flow(options: str = "max_ahead 'INTERVAL 1 HOUR'", columns: str = COLUMNS, view: str = PAST) -> Driver:
    return flow(f"CREATE STREAM s ({columns}) OPTIONS ({options})", view)


def released(driver: Driver) -> dict[str, Any]:
    return {row["column"]: row["source_watermark"] for row in driver.sql("SHOW WATERMARKS")}


def test_rows_from_the_far_future_are_refused_and_push_nothing() -> None:
    driver = stream_flow()
    driver.insert(
        "s",
        {"id": 1, "ts": NOW + timedelta(hours=1)},
        {"id": 2, "ts": NOW + timedelta(hours=1, microseconds=1)},
        {"id": 3, "ts": datetime(9999, 1, 1)},
    )
    changes = driver.step(NOW)
    assert released(driver) == {"ts": NOW + timedelta(minutes=59)}
    assert [(row["text"], row["reason"]) for row, _ in changes["s.rejected"]] == [
        (f'{{"id":2,"ts":"{NOW + timedelta(hours=1, microseconds=1)}"}}', REASON),
        ('{"id":3,"ts":"9999-01-01 00:00:00"}', REASON),
    ]
    assert driver._engine.progress[-1].rows_out["s.rejected"] == 2
    driver.restart()
    driver.insert("s", {"id": 2, "ts": NOW + timedelta(hours=1, microseconds=1)})
    assert "s.rejected" not in driver.step(NOW + timedelta(seconds=1)), "the clock has gone on"
    assert len(driver.table("s.rejected")) == 2 and driver.late("v") == []


REASON = "`ts` is further ahead of the clock than max_ahead allows"


def test_dates_are_compared_by_day_and_integers_not_at_all() -> None:
    driver = stream_flow(
        "max_ahead '1 day'",
        "id INT, d DATE, n INT, WATERMARK d DELAY OF INTERVAL 1 DAY, WATERMARK n DELAY OF 0",
        "CREATE VIEW v AS SELECT id FROM s EMIT WHEN WATERMARK PAST d",
    )
    driver.insert("s", {"id": 1, "d": date(2026, 1, 2), "n": 2**31 - 1}, {"id": 2, "d": date(2026, 1, 3), "n": 5})
    driver.step(NOW)
    assert [row["text"] for row in driver.table("s.rejected")] == ['{"id":2,"d":"2026-01-03","n":5}']
    assert released(driver) == {"d": date(2026, 1, 1), "n": 2**31 - 1}


def test_refused_rows_of_a_file_say_which_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text(
        '{"id": 1, "ts": "2026-01-01 12:00:00"}\n{"id": 2, "ts": "2027-01-01 00:00:00"}\n'
    )
    driver = Driver()
    driver.sql(f"CREATE STREAM s ({COLUMNS}) USING json OPTIONS (path '{tmp_path}/in', max_ahead '1 hour')")
    driver.sql("CREATE VIEW v AS SELECT id FROM s")
    assert driver.step(NOW)["v"] == [({"id": 1}, 1)], "no view sees them"
    (row,) = driver.table("s.rejected")
    assert row["file"].endswith("/in/1.json") and row["line"] is None and row["reason"] == REASON


def test_a_row_without_a_time_is_late_and_counted() -> None:
    driver = stream_flow("max_ahead '1 hour', late 'keep'")
    driver.insert("s", {"id": 1, "ts": None}, {"id": 2, "ts": NOW})
    driver.step(NOW)
    (row,) = driver.late("v")
    assert (row["row"], row["column"], row["watermark"], row["behind"]) == ('{"id":1,"ts":null}', "ts", None, None)
    assert driver._engine.progress[-1].late == {"v": {"s": 1}}
    driver.insert("s", {"id": 3, "ts": None}, {"id": 4, "ts": NOW - timedelta(hours=1)})
    driver.step(NOW)
    driver.restart()
    assert driver._engine.version.watermarks.late == {"v": {"s": 3}}
    assert sorted((row["row"], row["watermark"]) for row in driver.late("v"))[1:] == [
        ('{"id":3,"ts":null}', "2026-01-01 11:59:00"),
        ('{"id":4,"ts":"2026-01-01 11:00:00"}', "2026-01-01 11:59:00"),
    ]
    driver.sql("DROP VIEW v")
    assert driver._engine.version.watermarks.late == {}


def test_a_row_that_is_taken_back_too_late_is_noted_as_such() -> None:
    driver = Driver()
    driver.sql("CREATE CHANGELOG a (id INT, t BIGINT, WATERMARK t); CREATE STREAM b (id INT, t BIGINT, WATERMARK t)")
    driver.sql("CREATE VIEW v AS SELECT a.id FROM a JOIN b ON a.id = b.id AND a.t BETWEEN b.t - 5 AND b.t + 5")
    for name in ("a", "b"):
        driver.insert(name, {"id": 1, "t": 5})
    driver.step()
    driver.watermark("a", 10)
    driver.step()
    driver.delete("a", {"id": 1, "t": 5})
    assert driver.step()["v"] == []
    assert [(row["row"], row["undo"]) for row in driver.late("v")] == [('{"id":1,"t":5}', True)]


@pytest.mark.parametrize("zone", [timezone.utc, timezone(timedelta(hours=5))])
def test_the_clock_is_that_of_the_step(zone: timezone) -> None:
    driver = stream_flow("max_ahead '0 seconds'")
    driver.insert("s", {"id": 1, "ts": NOW})
    at: Any = NOW.replace(tzinfo=timezone.utc).astimezone(zone)
    assert "s.rejected" not in driver.step(at)

"""The zone of a flow: how it is set and kept, and what it means for texts, sources, windows and answers."""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from rejoinder.errors import DefinitionConflict, InvalidSql
from rejoinder.testing import Driver

BERLIN = ZoneInfo("Europe/Berlin")
FIRST = datetime(2026, 10, 25, 0, 30, tzinfo=ZoneInfo("UTC"))
"""02:30 in Berlin, an hour before the next 02:30."""
SECOND = FIRST + timedelta(hours=1)


def test_a_flow_shows_and_reads_times_in_its_zone() -> None:
    driver = Driver(time_zone="Europe/Berlin")
    driver.sql("CREATE STREAM events (id INT, ts TIMESTAMP, many ARRAY<TIMESTAMP>, n TIMESTAMP_NTZ)")
    driver.sql("CREATE VIEW v AS SELECT id, ts, many, n, CAST(ts AS STRING) AS text, hour(ts) AS h FROM events")
    local = datetime(2026, 7, 1, 12)
    driver.insert("events", {"id": 1, "ts": local, "many": [local], "n": local})
    driver.insert("events", {"id": 2, "ts": local.replace(tzinfo=ZoneInfo("UTC")), "many": None, "n": None})
    driver.step()
    later = local + timedelta(hours=2)
    assert driver.table("v") == [
        {"id": 1, "ts": local, "many": [local], "n": local, "text": "2026-07-01 12:00:00", "h": 12},
        {"id": 2, "ts": later, "many": None, "n": None, "text": "2026-07-01 14:00:00", "h": 14},
    ]
    assert driver.sql("SELECT unix_seconds(ts) AS s FROM v WHERE ts = TIMESTAMP '2026-07-01 12:00:00'") == [
        {"s": int(local.replace(tzinfo=BERLIN).timestamp())}
    ]
    assert [row["ts"] for row in driver.sql("SELECT STREAM id, ts FROM v")] == [local, later]
    assert [row["ts"] for row in driver.sql("SELECT TVR ts FROM v")[-1].rows] == [local, later]


def test_both_hours_of_a_night_are_kept_apart() -> None:
    driver = Driver(time_zone="Europe/Berlin")
    driver.sql("CREATE STREAM events (id INT, ts TIMESTAMP)")
    driver.sql("CREATE VIEW hours AS SELECT date_trunc('HOUR', ts) AS h, count(*) AS n FROM events GROUP BY 1")
    driver.insert("events", {"id": 1, "ts": FIRST}, {"id": 2, "ts": SECOND})
    driver.step()
    assert driver.table("hours") == [{"h": datetime(2026, 10, 25, 2), "n": 1}] * 2


@pytest.mark.parametrize("call", ["TUMBLE(ts, INTERVAL 1 DAY)", "HOP(ts, INTERVAL 1 DAY, INTERVAL 1 DAY)"])
def test_windows_of_days_are_local_days(call: str) -> None:
    driver = Driver(time_zone="Europe/Berlin")
    driver.sql("CREATE STREAM events (id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 0 SECONDS)")
    driver.sql(f"CREATE VIEW days AS SELECT {call} AS w, count(*) AS n FROM events GROUP BY {call}")
    starts = [datetime(2026, 10, 24), datetime(2026, 10, 25), datetime(2026, 10, 26)]
    for start in starts:
        begin = start.replace(tzinfo=BERLIN).astimezone(ZoneInfo("UTC"))
        driver.insert("events", {"id": 1, "ts": begin}, {"id": 2, "ts": begin - timedelta(microseconds=1)})
    driver.step()
    found = {row["w"]["start"]: (row["w"]["end"], row["n"]) for row in driver.table("days")}
    assert found == {
        datetime(2026, 10, 23): (datetime(2026, 10, 24), 1),
        datetime(2026, 10, 24): (datetime(2026, 10, 25), 2),
        datetime(2026, 10, 25): (datetime(2026, 10, 26), 2),
        datetime(2026, 10, 26): (datetime(2026, 10, 27), 1),
    }
    lengths = driver.sql("SELECT (unix_seconds(w.end) - unix_seconds(w.start)) / 3600 AS h FROM days ORDER BY w.start")
    assert [row["h"] for row in lengths] == [24, 24, 25, 24]


def test_a_final_day_of_25_hours_waits_for_its_end() -> None:
    driver = Driver(time_zone="Europe/Berlin")
    driver.sql("CREATE STREAM events (id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 0 SECONDS)")
    driver.sql(
        "CREATE VIEW days AS SELECT TUMBLE(ts, INTERVAL 1 DAY) AS w, count(*) AS n FROM events "
        "GROUP BY TUMBLE(ts, INTERVAL 1 DAY) EMIT FINAL"
    )
    driver.insert(
        "events", {"id": 1, "ts": datetime(2026, 10, 25, 10)}, {"id": 2, "ts": datetime(2026, 10, 25, 23, 59)}
    )
    driver.step()
    assert driver.table("days") == []
    driver.insert("events", {"id": 3, "ts": datetime(2026, 10, 26)})
    driver.step()
    driver.step()
    assert [row["n"] for row in driver.table("days")] == [2]


def test_cumulated_windows_of_days_begin_and_end_at_midnight() -> None:
    driver = Driver(time_zone="Europe/Berlin")
    driver.sql("CREATE STREAM events (id INT, ts TIMESTAMP)")
    driver.sql(
        "CREATE VIEW c AS SELECT CUMULATE(ts, INTERVAL 1 DAY, INTERVAL 2 DAYS) AS w, count(*) AS n FROM events "
        "GROUP BY CUMULATE(ts, INTERVAL 1 DAY, INTERVAL 2 DAYS)"
    )
    driver.insert("events", {"id": 1, "ts": FIRST})
    driver.step()
    midnights = {moment for row in driver.table("c") for moment in row["w"].values()}
    assert midnights and all(moment.hour == 0 for moment in midnights)


def test_texts_of_files_are_local_times(tmp_path: Path) -> None:
    folder = tmp_path / "json"
    folder.mkdir()
    records = [
        {"id": 1, "ts": "2026-10-25 02:30:00", "place": {"at": "2026-07-01T12:00:00"}},
        {"id": 2, "ts": "2026-10-25T02:30:00+01:00", "place": {"at": "2026-07-01T10:00:00Z"}},
        {"id": 3, "ts": "2026-03-29 02:30:00", "place": None},
    ]
    (folder / "1.json").write_text("\n".join(map(json.dumps, records)))
    csv = tmp_path / "csv"
    csv.mkdir()
    lines = "1,2026-10-25 02:30:00\n2,2026-10-25T02:30:00+01:00\n3,2026-03-29 02:30:00\n"
    (csv / "1.csv.gz").write_bytes(gzip.compress(lines.encode()))
    driver = Driver(time_zone="Europe/Berlin")
    driver.sql(
        f"CREATE STREAM j (id INT, ts TIMESTAMP, place STRUCT<at: TIMESTAMP>) USING json OPTIONS (path '{folder}');"
        f"CREATE STREAM c (id INT, ts TIMESTAMP) USING csv OPTIONS (path '{csv}', header 'false');"
        "CREATE VIEW vj AS SELECT id, unix_seconds(ts) AS s, place.at AS at FROM j;"
        "CREATE VIEW vc AS SELECT id, unix_seconds(ts) AS s FROM c"
    )
    driver.step()
    seconds = [int(FIRST.timestamp()), int(SECOND.timestamp()), 1774747800]  # the last: 03:30, after the gap
    assert [row["s"] for row in driver.table("vc")] == seconds
    assert [row["s"] for row in driver.table("vj")] == seconds
    assert [row["at"] for row in driver.table("vj")] == [datetime(2026, 7, 1, 12)] * 2 + [None]


def test_computed_columns_are_bound_in_the_zone(tmp_path: Path) -> None:
    driver = Driver()
    driver.sql(
        "SET TIME ZONE 'Europe/Berlin';"
        "CREATE STREAM events (id INT, raw STRING, ts AS to_timestamp(raw, 'dd.MM.yyyy HH:mm'));"
        "CREATE VIEW v AS SELECT id, unix_seconds(ts) AS s FROM events"
    )
    driver.insert("events", {"id": 1, "raw": "25.10.2026 02:30"})
    driver.step()
    assert driver.table("v") == [{"id": 1, "s": int(FIRST.timestamp())}]


def test_the_zone_is_kept_and_cannot_change(tmp_path: Path) -> None:
    driver = Driver(store=tmp_path, time_zone="Europe/Berlin")
    driver.sql("CREATE STREAM events (id INT, ts TIMESTAMP); CREATE VIEW v AS SELECT id, hour(ts) AS h FROM events")
    driver.insert("events", {"id": 1, "ts": FIRST})
    driver.step()
    again = Driver(store=tmp_path)
    again.sql("SET TIME ZONE 'Europe/Berlin'")
    again.insert("events", {"id": 2, "ts": SECOND})
    again.step()
    assert [row["h"] for row in again.table("v")] == [2, 2]
    with pytest.raises(DefinitionConflict, match="the time zone of this flow is Europe/Berlin, not Asia/Tokyo"):
        Driver(store=tmp_path, time_zone="Asia/Tokyo")
    with pytest.raises(DefinitionConflict, match=r"not UTC"):
        again.sql("SET TIME ZONE 'UTC'")


@pytest.mark.parametrize("statement", ["SET TIME ZONE 'Mars/Olympus'", "SET TIME ZONE Berlin", "SET TIME ZONE"])
def test_a_zone_that_is_none_is_refused(statement: str) -> None:
    with pytest.raises(InvalidSql):
        Driver().sql(statement)


def test_joins_over_a_day_keep_what_they_need() -> None:
    """A day on the calendar may have 25 hours: what joins on it must not expire after 24."""
    driver = Driver(time_zone="Europe/Berlin")
    driver.sql(
        "CREATE STREAM a (id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 0 SECONDS);"
        "CREATE STREAM b (id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 0 SECONDS);"
        "CREATE VIEW v AS SELECT a.id, b.ts FROM a JOIN b ON a.id = b.id "
        "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 DAY"
    )
    driver.insert("a", {"id": 1, "ts": datetime(2026, 10, 24, 12)})
    driver.step()
    for source in ("a", "b"):
        driver.insert(source, {"id": 9, "ts": datetime(2026, 10, 25, 11, 30)})
    driver.step()
    driver.insert("b", {"id": 1, "ts": datetime(2026, 10, 25, 11, 59)})
    driver.step()
    assert [row["ts"] for row in driver.table("v") if row["id"] == 1] == [datetime(2026, 10, 25, 11, 59)]

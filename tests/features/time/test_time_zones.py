"""Time zones: local times over the changes of daylight saving, by Python's own zone data; windows by local day."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rejoinder.errors import EvaluationError, InvalidSql
from rejoinder.testing import Driver

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "America/Sao_Paulo",
    "Pacific/Apia",
)
CHANGES = (
    datetime(2026, 3, 29, 1),
    datetime(2026, 10, 25, 1),
    datetime(2026, 3, 8, 7),
    datetime(2026, 11, 1, 6),
    datetime(2026, 4, 4, 15),
    datetime(2026, 10, 3, 15, 30),
    datetime(2011, 12, 30, 10),
    datetime(2018, 11, 4, 3),
    datetime(1883, 11, 18, 17),
)


def test_local_times_and_instants_are_those_of_the_zone_data() -> None:
    """Every quarter of an hour around changes of daylight saving, and times in between and far away."""
    chosen = random.Random(7)
    times = [change + timedelta(minutes=15 * step) for change in CHANGES for step in range(-60, 60)]
    times += [datetime(1900, 1, 1) + timedelta(seconds=chosen.randrange(10**10)) for _ in range(300)]
    driver = Driver()
    driver.sql("CREATE STREAM t (at TIMESTAMP, zone STRING)")
    driver.sql(
        "CREATE VIEW v AS SELECT at, zone, from_utc_timestamp(at, zone) AS here, to_utc_timestamp(at, zone) AS there, "
        "at AT TIME ZONE zone AS wall, CAST(at AS TIMESTAMP_NTZ) AT TIME ZONE zone AS moment, "
        "convert_timezone(zone, 'UTC', CAST(at AS TIMESTAMP_NTZ)) AS converted FROM t"
    )
    driver.insert("t", *({"at": at, "zone": zone} for at in times for zone in ZONES), {"at": times[0], "zone": None})
    driver.step()
    rows = driver.table("v")
    assert len(rows) == len(times) * len(ZONES) + 1
    for row in rows:
        if row["zone"] is None:
            assert (row["here"], row["there"]) == (None, None)
            continue
        zone, at = ZoneInfo(row["zone"]), row["at"]
        local = at.replace(tzinfo=timezone.utc).astimezone(zone).replace(tzinfo=None)
        instant = at.replace(tzinfo=zone).astimezone(timezone.utc).replace(tzinfo=None)
        found = {name: row[name] for name in ("here", "wall", "there", "moment", "converted")}
        assert found == dict.fromkeys(("here", "wall"), local) | dict.fromkeys(
            ("there", "moment", "converted"), instant
        )


def test_windows_by_local_day_have_23_24_or_25_hours_and_become_final() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 0 SECONDS)")
    day = "date_trunc('DAY', from_utc_timestamp(ts, 'Europe/Berlin'))"
    driver.sql(f"CREATE VIEW days AS SELECT {day} AS day, count(*) AS hours FROM t GROUP BY {day}")
    driver.sql(
        "CREATE VIEW final AS SELECT TUMBLE_START(here, INTERVAL 1 DAY) AS start, count(*) AS hours "
        "FROM (SELECT from_utc_timestamp(ts, 'Europe/Berlin') AS here FROM t) "
        "GROUP BY TUMBLE(here, INTERVAL 1 DAY) EMIT FINAL"
    )
    first = datetime(2026, 3, 27, 23)  # midnight in Berlin
    hours = [first + timedelta(hours=hour) for hour in range(24 * 4 - 1)]
    driver.insert("t", *({"ts": hour} for hour in hours))
    driver.step()
    expected = [(datetime(2026, 3, 28), 24), (datetime(2026, 3, 29), 23), (datetime(2026, 3, 30), 24)]
    counts = {row["day"]: row["hours"] for row in driver.table("days")}
    assert sorted(counts.items())[:3] == expected
    driver.insert("t", {"ts": first + timedelta(days=6)})
    driver.step()
    assert sorted((row["start"], row["hours"]) for row in driver.table("final"))[:3] == expected
    back = Driver()
    back.sql("CREATE STREAM t (ts TIMESTAMP)")
    back.sql(f"CREATE VIEW days AS SELECT {day} AS day, count(*) AS hours FROM t GROUP BY {day}")
    back.insert("t", *({"ts": datetime(2026, 10, 24, 22) + timedelta(hours=hour)} for hour in range(49)))
    back.step()
    assert {row["day"].day: row["hours"] for row in back.table("days")} == {25: 25, 26: 24}


def test_windows_begin_at_an_offset() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 0 SECONDS)")
    window = "ts, INTERVAL 1 DAY, INTERVAL '-6' HOUR"
    forms = {
        "value": f"SELECT TUMBLE({window}).start AS start, count(*) AS n FROM t GROUP BY TUMBLE({window})",
        "relation": "SELECT window_start AS start, count(*) AS n FROM "
        "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 1 DAY, INTERVAL '-6' HOUR) GROUP BY window_start",
        "spark": "SELECT window.start, count(*) AS n FROM t GROUP BY window(ts, '1 day', '1 day', '-6 hours')",
        "hop": "SELECT w.start, count(*) AS n FROM "
        "(SELECT HOP(ts, INTERVAL 1 DAY, INTERVAL 1 DAY, INTERVAL '-6' HOUR) AS w FROM t) GROUP BY w",
        "final": f"SELECT TUMBLE_START({window}) AS start, count(*) AS n FROM t GROUP BY TUMBLE({window}) EMIT FINAL",
    }
    for name, text in forms.items():
        driver.sql(f"CREATE VIEW {name} AS {text}")
    times = [datetime(1969, 12, 30) + timedelta(hours=5 * step) for step in range(40)]
    driver.insert("t", *({"ts": at} for at in times))
    driver.step()
    driver.insert("t", {"ts": datetime(1970, 1, 20)})
    driver.step()
    counts: dict[datetime, int] = {}
    for at in times:
        day = (at + timedelta(hours=6)).replace(hour=0) - timedelta(hours=6)
        counts[day] = counts.get(day, 0) + 1
    for name in forms:
        found = {row["start"]: row["n"] for row in driver.table(name) if row["start"] < datetime(1970, 1, 19)}
        assert found == counts, name
    with pytest.raises(InvalidSql, match="the offset of windows must be less than the distance of their starts"):
        driver.sql("SELECT TUMBLE(ts, INTERVAL 1 HOUR, INTERVAL 1 HOUR) AS w FROM t")


BAD: list[tuple[str, Any, str]] = [
    ("from_utc_timestamp(ts, 'Mars/Olympus')", InvalidSql, "'Mars/Olympus' is not the name of a time zone"),
    ("from_utc_timestamp(ts, 'europe/berlin')", InvalidSql, "is not the name of a time zone"),
    ("to_utc_timestamp(ts, '+19:00')", InvalidSql, "is not the name of a time zone"),
    ("ts AT TIME ZONE 1", Exception, "the name of a time zone is needed, not int"),
]


@pytest.mark.parametrize(("text", "error", "fact"), BAD)
def test_a_zone_that_spark_does_not_know_is_refused(text: str, error: type[Exception], fact: str) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (ts TIMESTAMP, zone STRING)")
    with pytest.raises(error, match=fact):
        driver.sql(f"CREATE VIEW v AS SELECT {text} AS x FROM t")
    driver.sql("CREATE VIEW v AS SELECT from_utc_timestamp(ts, zone) AS x FROM t")
    driver.insert("t", {"ts": datetime(2026, 1, 1), "zone": "Mars/Olympus"})
    with pytest.raises(EvaluationError, match="there is no such time zone"):
        driver.step()

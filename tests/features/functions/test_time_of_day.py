"""Columns of TIME and of INTERVAL DAY TO SECOND: keys, aggregates, joins and retractions."""

from __future__ import annotations

from datetime import datetime, time, timedelta

import pytest

from rejoinder.errors import Unsupported
from rejoinder.testing import Driver

_TEN, _HOUR = time(10, 20), timedelta(hours=1)
_FIRST = {"k": "a", "at": _TEN, "d": _HOUR, "ts": datetime(2024, 1, 1)}
_SECOND = {"k": "a", "at": _TEN, "d": _HOUR, "ts": datetime(2024, 1, 2, 3)}


@pytest.fixture
def driver() -> Driver:
    """A flow with two rows that have equal times of day, and one without any."""
    made = Driver(parallelism=2)
    made.sql("CREATE CHANGELOG t (k STRING, at TIME, d INTERVAL DAY TO SECOND, ts TIMESTAMP)")
    made.insert("t", _FIRST, _SECOND, {"k": "b", "at": None, "d": None, "ts": None})
    return made


def test_times_of_day_and_intervals_are_keys_and_values(driver: Driver) -> None:
    driver.sql("CREATE VIEW v AS SELECT at, d, count(*) AS n, max(at) AS m FROM t GROUP BY at, d")
    driver.sql("CREATE VIEW w AS SELECT k, max(ts) - min(ts) AS span FROM t GROUP BY k")
    driver.step()
    rows = {row["at"]: row for row in driver.table("v")}
    assert rows[_TEN] == {"at": _TEN, "d": _HOUR, "n": 2, "m": _TEN}
    assert rows[None]["n"] == 1
    assert {row["k"]: row["span"] for row in driver.table("w")} == {"a": timedelta(days=1, hours=3), "b": None}
    driver.delete("t", _SECOND)
    driver.step()
    assert {row["k"]: row["span"] for row in driver.table("w")} == {"a": timedelta(), "b": None}


def test_rows_are_joined_by_them_and_compared(driver: Driver) -> None:
    driver.sql(
        "CREATE VIEW v AS SELECT a.ts - b.ts AS gap FROM t a JOIN t b ON a.at = b.at AND a.d = b.d "
        "WHERE a.ts - b.ts > make_dt_interval(1)"
    )
    driver.step()
    assert driver.table("v") == [{"gap": timedelta(days=1, hours=3)}]


@pytest.mark.parametrize("made", ["make_ym_interval(1, 2)", "make_interval(1)"])
def test_other_intervals_are_not_the_type_of_a_column(driver: Driver, made: str) -> None:
    with pytest.raises(Unsupported, match="is not the type of a column"):
        driver.sql(f"CREATE VIEW v AS SELECT {made} AS x FROM t")
    driver.sql(f"CREATE VIEW v AS SELECT ts + {made} AS x FROM t")

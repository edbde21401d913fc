"""Lookups by a range of times: taken where nothing else links two inputs, and where a key has many rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.runtime.matching.range_matching import moved
from rejoinder.testing import Driver

START = datetime(2026, 1, 1)
NEAR = "r.ts BETWEEN l.ts - INTERVAL 2 SECONDS AND l.ts + INTERVAL 1 SECOND"


def filled_flow(rows_per_key: int, parallelism: int = 2) -> Driver:
    driver = Driver(parallelism=parallelism)
    for side in "lr":
        driver.sql(f"CREATE STREAM {side} (k BIGINT, ts TIMESTAMP)")
    driver.sql("CREATE INDEX ON l (k); CREATE INDEX ON r (k)")
    for side in "lr":
        driver.insert(side, *(row(number % 3, number) for number in range(3 * rows_per_key)))
    driver.step()
    return driver


def row(key: int, seconds: float) -> dict[str, Any]:
    return {"k": key, "ts": START + timedelta(seconds=seconds)}


def names(driver: Driver) -> set[str]:
    return {each["name"] for each in driver.arrangements() if each["used_by"] != ["index"]}


def test_a_key_with_many_rows_is_searched_by_time() -> None:
    driver = filled_flow(40)
    driver.sql(f"CREATE VIEW v AS SELECT l.k, l.ts, r.ts AS other FROM l JOIN r ON l.k = r.k AND {NEAR}")
    assert names(driver) == {"l[k; ts]", "r[k; ts]"}
    assert "→ r[k; ts] by k, ts near ts" in driver.sql("EXPLAIN v")
    assert len(driver.table("v")) == 120
    driver.sql("CREATE VIEW w AS SELECT k FROM l")  # plans anew: what is ordered stays ordered
    assert names(driver) == {"l[k; ts]", "r[k; ts]"}
    driver.restart(parallelism=3)
    driver.insert("l", row(1, 3.5), row(7, 4))
    found = [found["other"] for found, diff in driver.step()["v"] for _ in range(diff)]
    assert found == [START + timedelta(seconds=4)]


def test_a_key_with_few_rows_is_not() -> None:
    driver = filled_flow(4)
    driver.sql(f"CREATE VIEW v AS SELECT l.k, r.ts AS other FROM l JOIN r ON l.k = r.k AND {NEAR}")
    assert names(driver) == {"l[k]", "r[k]"}
    one_sided = "r.ts >= l.ts"  # no range
    driver.sql(f"CREATE VIEW w AS SELECT l.k, r.ts AS other FROM l JOIN r ON {one_sided}")
    assert not [name for name in names(driver) if "; ts" in name]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_without_a_key_times_are_the_key(parallelism: int) -> None:
    driver = filled_flow(20, parallelism)
    driver.sql(f"CREATE VIEW v AS SELECT l.ts, r.ts AS other FROM l JOIN r ON {NEAR}")
    assert names(driver) == {"l[; ts]", "r[; ts]"}
    driver.insert("r", row(9, 30.5), {"k": 1, "ts": None})
    driver.insert("l", row(9, 1000), row(9, 31))
    found = {(each["ts"], each["other"]) for each in driver.table("v") + [new for new, _ in driver.step()["v"]]}
    times = {side: [START + timedelta(seconds=s) for s in range(60)] for side in "lr"}
    times["r"].append(START + timedelta(seconds=30.5))
    times["l"].append(START + timedelta(seconds=1000))
    wanted = {(a, b) for a in times["l"] for b in times["r"] if timedelta(seconds=-2) <= b - a <= timedelta(seconds=1)}
    assert found == wanted


def test_the_ends_of_all_times_are_ends_of_ranges() -> None:
    most = 2**63 - 1
    column = pa.array([most, 5, -most - 1, None], pa.int64())
    up, down = moved(column, 10), moved(column, -10)
    assert (up.values[:3].tolist(), down.values[:3].tolist()) == (
        [most, 15, -most + 9],
        [most - 10, -5, -most - 1],
    )
    assert not up.strict and up.known is not None and up.known.tolist()[3] is False

"""The store of a windowed join: search by key and time, segments that roll with stream time."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rejoinder as rj
from rejoinder.kernels.arrow.columns import HASH
from rejoinder.kernels.arrow.ordered import Ordered
from rejoinder.testing import Driver
from tests.golden.kafka_streams.cells import CASES, DATA

RULES: dict[str, dict[str, Any]] = {rule["id"]: rule for rule in DATA["store_design"]}
START = datetime(2026, 1, 1)
WITHIN, DELAY = 60, 4
RETENTION = WITHIN + DELAY
SEGMENTS = 4


def join_flow(method: str = "join", store: Path | None = None, parallelism: int = 1) -> Driver:
    driver = Driver(store=store, parallelism=parallelism)
    for name in ("left", "right"):
        driver.sql(
            f"CREATE STREAM {name} (k STRING, v BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL {DELAY} SECONDS)"
        )
    sides = [rj.Stream.of(driver, name) for name in ("left", "right")]
    getattr(sides[0], method)(sides[1], on="k", within=f"{WITHIN} seconds").to("joined")
    return driver


def put(driver: Driver, seconds: float, key: str = "a", side: str | None = None, number: int = 0) -> None:
    for name in ("left", "right") if side is None else (side,):
        driver.insert(name, {"k": key, "v": number, "ts": START + timedelta(seconds=seconds)})


def buffers(driver: Driver) -> dict[str, int]:
    return {each["relation"]: each["rows"] for each in driver.arrangements() if each["used_by"] != ["source"]}


def test_rows_of_a_key_are_sorted_by_time_and_all_kept() -> None:
    """ks-st-01, ks-st-10: key and time are the order of a run, not an identity: rows with both equal stay."""
    driver = Driver()
    driver.sql("CREATE STREAM rates (k STRING, v BIGINT, ts TIMESTAMP)")
    driver.sql("CREATE STREAM orders (k STRING, ts TIMESTAMP)")
    driver.sql(
        "CREATE VIEW priced AS SELECT o.ts, r.v FROM orders o ASOF JOIN rates r MATCH_CONDITION (o.ts >= r.ts) "
        "ON o.k = r.k"
    )
    for seconds in (30, 10, 20, 20):
        driver.insert("rates", {"k": "a", "v": seconds, "ts": START + timedelta(seconds=seconds)})
    driver.insert("orders", {"k": "a", "ts": START + timedelta(seconds=25)})
    assert [row["v"] for row, diff in driver.step()["priced"] for _ in range(diff)] == [20, 20]
    assert "rates[k or NULL; ts]" in [each["name"] for each in driver.arrangements()]
    times = pa.array([10, 20, 20, 30], pa.timestamp("us", tz="UTC"))
    run = pa.table({HASH: pa.array([7] * 4, pa.uint64()), "ts": times})
    assert Ordered.of(run, "ts").values.tolist() == [10, 20, 20, 30]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_pair_across_a_segment_is_found_once(parallelism: int) -> None:
    """ks-st-08: a search that crosses the boundary of segments finds the rows of both sides of it."""
    driver = join_flow(parallelism=parallelism)
    width = RETENTION / SEGMENTS
    for number in range(1, 4):
        put(driver, number * width - 1, side="left", number=number)
        put(driver, number * width + 1, side="left", number=-number)
    driver.step()
    put(driver, 2 * width, side="right")
    found = sorted(row["v"] for row, diff in driver.step()["joined"] for _ in range(diff))
    assert found == [-3, -2, -1, 1, 2, 3]


def test_storage_follows_stream_time_while_old_data_is_loaded() -> None:
    """ks-st-05, ks-st-06, ks-st-07: ten retention periods in one go leave no more than n/(n-1) of one."""
    driver = join_flow()
    for second in range(10 * RETENTION):
        put(driver, second, key=str(second % 7))
    driver.step()
    put(driver, 10 * RETENTION)  # the next rows: a run of which most is over is rewritten without it
    driver.step()
    most = RETENTION * SEGMENTS / (SEGMENTS - 1)
    assert all(rows <= most + 1 for rows in buffers(driver).values()), buffers(driver)
    assert all(rows >= WITHIN for rows in buffers(driver).values())


def test_expired_segments_are_dropped_whole(tmp_path: Path) -> None:
    """ks-st-02, ks-st-03, ks-st-05: rows and files go with their segment, by the time of the streams and no clock."""
    driver = join_flow(store=tmp_path, parallelism=2)
    for second in range(RETENTION):
        put(driver, second, key=str(second % 7))
    driver.step()
    full, files = held(driver), set(tmp_path.rglob("*.arrow"))
    for times in range(1, 12):  # as long as dropped manifests are kept
        put(driver, times * 10 * RETENTION)
        driver.step()
    assert buffers(driver) == {"left#on-time": 1, "right#on-time": 1}
    assert held(driver) < full / 3
    assert len(files & set(tmp_path.rglob("*.arrow"))) <= len(files) / 2  # changelogs are history, and stay


def held(driver: Driver) -> int:
    return sum(int(each["bytes"]) for each in driver.arrangements())


def test_a_left_join_of_streams_keeps_the_secondary_side_alone() -> None:
    """ks-st-12, ks-st-04: rows of the primary side are never joined again after their arrival."""
    driver = join_flow("left_join")
    for second in range(3 * RETENTION):
        put(driver, second)
        driver.step()
    assert set(buffers(driver)) == {"right#on-time"}
    kept = {each["relation"]: each["rows"] for each in driver.arrangements()}
    assert "left#on-time" not in kept and "left" not in kept, "later views are filled from its changes"
    plain = Driver()
    for name in ("left", "right"):
        plain.sql(f"CREATE STREAM {name} (k STRING, ts TIMESTAMP)")
    left, right = (rj.Stream.of(plain, name, time="ts") for name in ("left", "right"))
    left.left_join(right, on="k", within="1 minute").to("joined")
    assert {each["name"] for each in plain.arrangements()} == {"right[k]"}


def test_bounds_are_inclusive_and_keys_are_whole() -> None:
    """ks-st-09, ks-st-11: both are cases of the data, which `test_cases` plays."""
    assert {"ks-kstream-kstream-boundary", "ks-kstream-kstream-key-prefix", "ks-kstream-kstream-same-ts"} <= {
        case["id"] for case in CASES
    }
    driver = join_flow()
    put(driver, 0, key="k1", side="left")
    for seconds, key in ((WITHIN, "k1"), (WITHIN + 1, "k1"), (0, "k"), (0, "k11")):
        put(driver, seconds, key=key, side="right", number=seconds)
    assert [row["right_v"] for row, _ in driver.step()["joined"]] == [WITHIN]


def test_every_rule_of_the_store_is_named_by_a_test() -> None:
    here = "".join(value.__doc__ or "" for value in globals().values() if callable(value))
    assert [rule for rule in RULES if rule not in here] == []

"""Windows over random out-of-order streams: in the end the batch answer of what was not late, and no state."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.testing import Driver
from tests.oracle.budget import budget

START = datetime(2024, 1, 1)
SIZE, SLIDE = 10, 5
BATCH = f"time_bucket(INTERVAL {SIZE} MINUTE, ts)"
OURS = f"TUMBLE(ts, INTERVAL {SIZE} MINUTES)"
HOPS = f"HOP(ts, INTERVAL {SLIDE} MINUTES, INTERVAL {SIZE} MINUTES)"
FIRST_HOP = f"time_bucket(INTERVAL {SLIDE} MINUTE, ts)"
QUERIES: dict[str, tuple[str, str]] = {
    "groups": (
        f"SELECT k, {OURS}.start AS s, count(*) AS n, sum(x) AS x, max(x) AS m, count(DISTINCT x) AS d"
        f" FROM l GROUP BY k, {OURS}",
        f"SELECT k, {BATCH}, count(*), sum(x), max(x), count(DISTINCT x) FROM l GROUP BY ALL",
    ),
    "hops": (
        f"SELECT {HOPS}.start AS s, count(*) AS n FROM l GROUP BY {HOPS}",
        f"SELECT s, count(*) FROM (SELECT {FIRST_HOP} AS s FROM l UNION ALL"
        f" SELECT {FIRST_HOP} - INTERVAL {SLIDE} MINUTE FROM l) GROUP BY s",
    ),
    "distinct": (f"SELECT DISTINCT k, {OURS}.start AS s FROM l", f"SELECT DISTINCT k, {BATCH} FROM l"),
    "groups of a bounded join": (
        f"SELECT {OURS.replace('ts', 'l.ts')}.start AS s, count(*) AS n FROM l JOIN r ON l.k = r.k"
        f" AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 7 MINUTES GROUP BY {OURS.replace('ts', 'l.ts')}",
        f"SELECT {BATCH.replace('ts', 'l.ts')}, count(*) FROM l JOIN r ON l.k = r.k"
        " AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 7 MINUTE GROUP BY ALL",
    ),
    "largest of a left join": (
        f"SELECT {OURS.replace('ts', 'l.ts')}.start AS s, max(r.x) AS x FROM l LEFT JOIN r ON l.k = r.k"
        f" AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 7 MINUTES GROUP BY {OURS.replace('ts', 'l.ts')}",
        f"SELECT {BATCH.replace('ts', 'l.ts')}, max(r.x) FROM l LEFT JOIN r ON l.k = r.k"
        " AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 7 MINUTE GROUP BY ALL",
    ),
    "join of groups": (
        f"SELECT p.s, p.n, q.n AS m FROM (SELECT {OURS}.start AS s, count(*) AS n FROM l GROUP BY {OURS}) p"
        f" JOIN (SELECT {OURS}.start AS s, count(*) AS n FROM r GROUP BY {OURS}) q ON p.s = q.s",
        f"SELECT p.s, p.n, q.n FROM (SELECT {BATCH} AS s, count(*) AS n FROM l GROUP BY ALL) p"
        f" JOIN (SELECT {BATCH} AS s, count(*) AS n FROM r GROUP BY ALL) q ON p.s = q.s",
    ),
    "left join on windows": (
        f"SELECT l.k, l.ts, l.x, r.x AS y FROM l LEFT JOIN r ON l.k = r.k AND {OURS.replace('ts', 'l.ts')} ="
        f" {OURS.replace('ts', 'r.ts')}",
        f"SELECT l.k, l.ts, l.x, r.x FROM l LEFT JOIN r ON l.k = r.k AND {BATCH.replace('ts', 'l.ts')} ="
        f" {BATCH.replace('ts', 'r.ts')}",
    ),
    "left join on windows and pairs": (
        f"SELECT l.k, l.ts, l.x, r.x AS y FROM l LEFT JOIN r ON l.k = r.k AND {OURS.replace('ts', 'l.ts')} ="
        f" {OURS.replace('ts', 'r.ts')} AND l.x < r.x",
        f"SELECT l.k, l.ts, l.x, r.x FROM l LEFT JOIN r ON l.k = r.k AND {BATCH.replace('ts', 'l.ts')} ="
        f" {BATCH.replace('ts', 'r.ts')} AND l.x < r.x",
    ),
}
WAITING = ("groups of a bounded join", "largest of a left join", "left join on windows")
FINAL = ("groups", "hops", *WAITING, "left join on windows and pairs")
CASES = [(name, False) for name in QUERIES] + [(name, True) for name in FINAL]


def counted(text: str) -> str:
    """A query over times as one over integers that count minutes."""
    text = re.sub(r"time_bucket\(INTERVAL (\d+) MINUTE, (\S+)\)", r"CAST(floor(\2 / \1.0) * \1 AS BIGINT)", text)
    return re.sub(r"INTERVAL (\d+) MINUTES?", r"\1", text)


@pytest.mark.parametrize(("name", "is_final"), CASES, ids=[f"{n}{', final' * f}" for n, f in CASES])
@budget(1)
@given(seed=st.integers(0, 2**32))
def test_the_end_is_the_batch_answer_of_what_was_on_time(name: str, is_final: bool, seed: int) -> None:
    play(*QUERIES[name], "TIMESTAMP", is_final, seed)


@pytest.mark.parametrize("kind", ["INT", "BIGINT"])
@pytest.mark.parametrize("name", FINAL)
@budget(1)
@given(seed=st.integers(0, 2**32))
def test_windows_of_integers_end_likewise(name: str, kind: str, seed: int) -> None:
    ours, batch = QUERIES[name]
    play(counted(ours), counted(batch), kind, True, seed)


def play(ours: str, batch: str, kind: str, is_final: bool, seed: int) -> None:
    """Run a view over random rows, late ones among them, to its end; compare with the batch answer of the others."""
    pick = random.Random(seed)

    def at(minute: int) -> datetime | int:
        return START + timedelta(minutes=minute) if kind == "TIMESTAMP" else minute

    driver = Driver(parallelism=pick.choice([1, 2, 7]))
    oracle = duckdb.connect()
    for side in "lr":
        driver.sql(f"CREATE STREAM {side} (k INT, ts {kind}, x INT, WATERMARK ts)")
        oracle.execute(f"CREATE TABLE {side} (k INT, ts {kind}, x INT)")
    driver.sql(f"CREATE VIEW v AS {ours}{' EMIT FINAL' if is_final else ''}")
    read = [side for side in "lr" if f" {side} " in ours + " "]
    watermarks = dict.fromkeys("lr", -1_000)
    late, out = 0, Counter[tuple[Any, ...]]()

    def step() -> None:
        for row, diff in driver.step()["v"]:
            assert diff > 0 or not is_final, "a final row is never retracted"
            out[tuple(row.values())] += diff

    for number in range(10):
        moved = {}
        for side in read:
            for _ in range(pick.randrange(5)):
                minute = 5 * number + pick.randrange(-20, 5)
                row = {"k": pick.choice([None, 1, 2]), "ts": at(minute), "x": pick.randrange(4)}
                driver.insert(side, row)
                if minute < watermarks[side]:
                    late += 1
                else:
                    oracle.execute(f"INSERT INTO {side} VALUES (?, ?, ?)", [*row.values()])
            if pick.random() < 0.6:
                moved[side] = max(watermarks[side], 5 * number - 15) + pick.randrange(1, 8)
                driver.watermark(side, at(moved[side]))
        step()
        watermarks |= moved
        if pick.random() < 0.2:
            driver.restart(parallelism=pick.choice([1, 2, 7]))
    for side in "lr":
        driver.watermark(side, at(9 * 24 * 60))
    step()
    assert +out == Counter(oracle.execute(batch).fetchall()) and min(out.values(), default=0) >= 0
    assert len(driver.late("v")) == late
    parts = driver._engine.version.state.arrangements.values()
    assert sum(ref.rows for spines in parts for part in spines for ref in part.refs) == 0

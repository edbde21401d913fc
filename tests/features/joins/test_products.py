"""Joins that no equality links: inputs are spread over all buckets by row, and changes go to all of them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest

from rejoinder.plan.physical.join_steps import Lookup
from rejoinder.plan.physical.steps import Send
from rejoinder.testing import Driver
from tests.deep import DEEP, one_seed
from tests.kit import bag, flow

SOURCES = (
    "CREATE CHANGELOG a (k INT, x INT); CREATE STREAM b (k INT, y INT);CREATE TABLE c (k INT, z INT, PRIMARY KEY (k))"
)
PARALLELISM = [pytest.param(1, marks=DEEP), 2, pytest.param(7, marks=DEEP)]
QUERIES = [
    "SELECT a.x, b.y FROM a CROSS JOIN b",
    "SELECT a.x, b.y FROM a JOIN b ON a.x < b.y",
    "SELECT a.x, b.y FROM a LEFT JOIN b ON a.x < b.y",
    "SELECT a.x, b.y FROM a RIGHT JOIN b ON a.x < b.y AND a.k = 1",
    "SELECT a.x, b.y FROM a FULL JOIN b ON abs(a.x - b.y) <= 1",
    "SELECT a.x, a.k FROM a SEMI JOIN b ON a.x < b.y",
    "SELECT a.x, a.k FROM a ANTI JOIN b ON a.x < b.y",
    "SELECT a.x, b.y, c.z FROM a JOIN b ON a.x < b.y JOIN c ON b.k = c.k",
    "SELECT a.x, b.y, c.z FROM a, b, c WHERE a.x + b.y = c.z",
    "SELECT a.x, b.y, c.z FROM a JOIN c ON a.k = c.k LEFT JOIN b ON c.z > b.y",
    "SELECT one.x, other.x AS o FROM a one JOIN a other ON one.x < other.x",
    "SELECT a.x FROM a LEFT JOIN b ON TRUE WHERE b.y IS NULL",
]


def wanted(query: str, rows: dict[str, list[tuple[Any, ...]]]) -> Counter[tuple[Any, ...]]:
    oracle = duckdb.connect()
    for name, value in (("a", "x"), ("b", "y"), ("c", "z")):
        oracle.execute(f"CREATE TABLE {name} (k INT, {value} INT)")
        for row in rows[name]:
            oracle.execute(f"INSERT INTO {name} VALUES (?, ?)", list(row))
    return Counter(oracle.execute(query).fetchall())


@pytest.mark.parametrize("parallelism", PARALLELISM)
@pytest.mark.parametrize("query", QUERIES)
def test_every_epoch_is_the_batch_answer(query: str, parallelism: int) -> None:
    driver, pick = flow(SOURCES, query, parallelism=parallelism), random.Random(f"{one_seed()} {parallelism}")
    rows: dict[str, list[tuple[Any, ...]]] = {"a": [], "b": [], "c": []}
    for epoch in range(5):
        for _ in range(4):
            k, x, y = pick.choice([None, 1, 2]), pick.randrange(6), pick.choice([None, *range(6)])
            driver.insert("a", {"k": k, "x": x})
            rows["a"].append((k, x))
            driver.insert("b", {"k": k, "y": y})
            rows["b"].append((k, y))
        gone = rows["a"].pop(0)
        driver.delete("a", {"k": gone[0], "x": gone[1]})
        z = pick.randrange(12)
        driver.insert("c", {"k": epoch % 2, "z": z})
        rows["c"] = [row for row in rows["c"] if row[0] != epoch % 2] + [(epoch % 2, z)]
        driver.step()
        assert bag(driver.table("v")) == wanted(query, rows)
        if epoch == 2:
            driver.restart(parallelism=8 - parallelism)
    driver.sql(f"CREATE VIEW filled AS {query}")
    assert Counter(map(str, driver.table("filled"))) == Counter(map(str, driver.table("v")))


def test_state_and_pairs_are_spread_over_the_buckets() -> None:
    """Issue 5: equi-joins partition, others broadcast. The changes of either side go to all buckets."""
    driver = flow(SOURCES, "SELECT a.x, b.y FROM a JOIN b ON a.x < b.y", parallelism=4)
    driver.insert("a", *({"k": 1, "x": n} for n in range(100)))
    driver.insert("b", *({"k": 1, "y": n} for n in range(100)))
    assert len(driver.step()["v"]) == 4950
    state = driver._engine.version.state.arrangements
    for relation in ("a", "b"):
        (kept,) = [parts for name, parts in state.items() if name.startswith(f"{relation}[")]
        assert sum(part.rows for part in kept) == 100 and all(part.rows > 10 for part in kept)
    steps = list(driver._engine.dataflow.steps())
    sends = {step.channel.stream: step.channel for step in steps if isinstance(step, Send)}
    lookups = [step for step in steps if isinstance(step, Lookup)]
    assert len(lookups) == 2 and all(sends[step.input].everywhere for step in lookups)


@pytest.mark.parametrize("parallelism", PARALLELISM)
@pytest.mark.parametrize("kind", ["", "LEFT", "RIGHT", "FULL"])
def test_rows_of_a_time_bounded_join_without_a_key_expire_in_every_bucket(kind: str, parallelism: int) -> None:
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE STREAM l (i INT, t BIGINT, WATERMARK t); CREATE STREAM r (i INT, t BIGINT, WATERMARK t)")
    join = f"SELECT l.i, r.i AS o FROM l {kind} JOIN r ON l.t BETWEEN r.t - 2 AND r.t + 1"
    driver.sql(f"CREATE VIEW v AS {join} EMIT FINAL")
    oracle = duckdb.connect()
    for number, name in enumerate("lr"):
        oracle.execute(
            f"CREATE TABLE {name} AS SELECT n AS i, 3 * n + {number} AS t FROM range(60) AS s(n) WHERE n % 7 > 0"
        )
    for start in range(0, 60, 10):
        for number, name in enumerate("lr"):
            some = [{"i": n, "t": 3 * n + number} for n in range(start, start + 10) if n % 7 > 0]
            driver.insert(name, *(some if name == "l" or start != 30 else some[:3]))
            if name == "r" and start == 30:
                oracle.execute("DELETE FROM r WHERE i BETWEEN 30 AND 39 AND i NOT IN (30, 31, 32)")
            driver.watermark(name, 3 * start + 20)
        driver.step()
        if start == 20:
            driver.restart(parallelism=3)
    for name in "lr":
        driver.watermark(name, 1_000_000)
    driver.step()
    assert bag(driver.table("v")) == Counter(oracle.execute(join).fetchall())
    assert sum(row["rows"] for row in driver.arrangements()) == 0

"""Expressions that fail where time counts: joins at arrival and within bounds, windows, EMIT, and functions of ENRICH.

No row is late here. So an epoch fails if and only if the batch query on its inputs does; in a join at arrival, if a row
of the epoch makes a pair that fails. An epoch that fails has not happened.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from rejoinder.errors import EvaluationError
from rejoinder.testing import Driver
from tests.deep import TIMES, seeds
from tests.oracle.failing_queries import terms

Row = dict[str, Any]
START = datetime(2026, 1, 1)
COLUMNS = "id INT, k INT, b INT, s STRING, ts TIMESTAMP"
SCHEMA = pa.schema(
    [("id", pa.int32()), ("k", pa.int32()), ("b", pa.int32()), ("s", pa.string()), ("ts", pa.timestamp("us"))]
)
NOW = "FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"
NEAR = "y.ts BETWEEN x.ts - INTERVAL {} AND x.ts + INTERVAL {}"
HOUR = "TUMBLE(x.ts, INTERVAL 1 HOUR)"
BUCKET = "time_bucket(INTERVAL '1 hour', x.ts)"
ANSWERED = f"'{__name__}:answered', 'a INT'"
EPOCHS = 8


def answered(row: Row) -> Row:
    """What ENRICH asks. It fails on some rows."""
    return {"a": 100 // row["b"]} if row["b"] is not None else {"a": None}


@dataclass(frozen=True)
class Query:
    """A query in our SQL, for DuckDB, and DuckDB's questions for what fails. `emit`: when its rows are shown."""

    text: str
    batch: str
    failing: list[str]
    emit: str = ""
    arrival: bool = False


def write(draw: random.Random) -> Query:
    """One query over the streams x and y, both in order of their times."""
    kind = draw.choice(
        ["near", "near", "left", "semi", "anti", "full", "group", "window", "enrich", "arrival", "arrival"]
    )
    term = draw.choice(terms("x", "y") if kind in ("near", "left", "arrival") else terms("x"))
    near, asked = (NEAR.format(*[minutes] * 2) for minutes in ("10 MINUTES", "'10 minutes'"))
    met = f"x.k = y.k AND {asked}"
    emit = draw.choice(["", "", " EMIT FINAL", " EMIT FINAL", " EMIT EVERY INTERVAL 30 MINUTES"])
    fails, sound = term.is_failing, term.value
    pairs = f"SELECT 1 FROM x JOIN y ON {met} WHERE {fails}"
    on = draw.choice(["", "on"])
    match kind:
        case "near" | "left":
            join = "LEFT JOIN" if kind == "left" else "JOIN"
            if on:  # the condition fails
                return Query(
                    f"SELECT x.id, y.id AS o FROM x {join} y ON x.k = y.k AND {near} AND {term.text} > 1{emit}",
                    f"SELECT x.id, y.id AS o FROM x {join} y ON {met} AND coalesce({sound} > 1, FALSE)",
                    [pairs],
                    emit,
                )
            outer = f"SELECT 1 FROM x LEFT JOIN y ON {met} WHERE {fails}"
            return Query(
                f"SELECT x.id, y.id AS o, {term.text} AS q FROM x {join} y ON x.k = y.k AND {near}{emit}",
                f"SELECT x.id, y.id AS o, {sound} AS q FROM x {join} y ON {met}",
                [outer if kind == "left" else pairs],
                emit,
            )
        case "semi" | "anti":
            return Query(
                f"SELECT x.id FROM x LEFT {kind.upper()} JOIN y ON x.k = y.k AND {near} AND {term.text} > 1{emit}",
                f"SELECT x.id FROM x {kind.upper()} JOIN y ON {met} AND coalesce({sound} > 1, FALSE)",
                [pairs],
                emit,
            )
        case "full":
            return Query(
                f"SELECT x.id, y.id AS o, {term.text} AS q FROM x FULL JOIN y ON x.k = y.k AND {near}{emit}",
                f"SELECT x.id, y.id AS o, {sound} AS q FROM x FULL JOIN y ON {met}",
                [f"SELECT 1 FROM x FULL JOIN y ON {met} WHERE {fails}"],
                emit,
            )
        case "group":
            return Query(
                f"SELECT x.k, MAX({term.text}) AS q FROM x JOIN y ON x.k = y.k AND {near} GROUP BY x.k",
                f"SELECT x.k, MAX({sound}) AS q FROM x JOIN y ON {met} GROUP BY x.k",
                [pairs],
            )
        case "window":
            return Query(
                f"SELECT {HOUR}.start AS w, 100 DIV SUM(x.b) AS q, MAX({term.text}) AS m FROM x GROUP BY {HOUR}{emit}",
                f"SELECT {BUCKET} AS w, CASE WHEN SUM(x.b) <> 0 THEN 100 // SUM(x.b) END AS q, MAX({sound}) AS m "
                "FROM x GROUP BY 1",
                [f"SELECT 1 FROM x WHERE {fails}", f"SELECT 1 FROM x GROUP BY {BUCKET} HAVING SUM(x.b) = 0"],
                emit,
            )
        case "enrich":
            return Query(
                f"SELECT id, k, a FROM ENRICH(TABLE (SELECT id, k, b FROM x WHERE k = 1), {ANSWERED}) e",
                "SELECT id, k, 100 // b AS a FROM x WHERE k = 1 AND b IS DISTINCT FROM 0",
                ["SELECT 1 FROM x WHERE k = 1 AND b = 0"],
            )
        case _:
            join = draw.choice(["JOIN", "LEFT JOIN"])
            return Query(
                f"SELECT x.id, y.id AS o, {term.text} AS q FROM x {join} y {NOW} AS y ON x.k = y.k",
                f"SELECT x.id, y.id AS o, {sound} AS q FROM x {join} y ON x.k = y.k",
                [f"SELECT 1 FROM x {join} y ON x.k = y.k WHERE {fails}"],
                arrival=True,
            )


class Flow:
    """Two streams in order, and what was committed of them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.query = write(self.draw)
        self.driver = Driver(parallelism=self.draw.choice([1, 2, 7]), functions=[answered])
        for name in "xy":
            self.driver.sql(f"CREATE STREAM {name} ({COLUMNS}, WATERMARK ts DELAY OF INTERVAL 0 MINUTES)")
        self.rows: dict[str, list[Row]] = {"x": [], "y": []}
        self.out: Counter[tuple[Any, ...]] = Counter()
        self.now = self.id = 0
        self.driver.sql(f"CREATE VIEW v AS {self.query.text}")

    def batch(self, x: list[Row], y: list[Row]) -> Counter[tuple[Any, ...]] | None:
        """What DuckDB answers; None if the query fails."""
        with duckdb.connect() as connection:
            connection.register("x", pa.Table.from_pylist(x, SCHEMA))
            connection.register("y", pa.Table.from_pylist(y, SCHEMA))
            if any(connection.execute(failing).fetchall() for failing in self.query.failing):
                return None
            return Counter(connection.execute(self.query.batch).fetchall())

    def epoch(self) -> bool:
        """Some rows; say whether they were committed."""
        draw = self.draw
        new: dict[str, list[Row]] = {"x": [], "y": []}
        for name in "xy":
            for _ in range(draw.randrange(4)):
                self.now += draw.choice([0, 1, 8, 40]) if name == "x" else 0
                self.id += 1
                new[name].append(
                    {
                        "id": self.id,
                        "k": draw.choice([0, 1, 1, None]),
                        "b": draw.choice([0, 1, 1, 1, 1, 2, 2, 2, 2, 3, None]),
                        "s": draw.choice(["1", "1", "2", "2", "3", "n/a", None]),
                        "ts": START + timedelta(minutes=self.now),
                    }
                )
            self.driver.insert(name, *new[name])
        after = {name: [*self.rows[name], *new[name]] for name in "xy"}
        wanted = self.batch(new["x"] if self.query.arrival else after["x"], after["y"])
        before, at = self.driver.epoch, START + timedelta(minutes=self.now)
        if wanted is None:
            with pytest.raises(EvaluationError):
                self.driver.step(at=at)
            assert self.driver.epoch == before
            self.driver.restart(parallelism=draw.choice([1, 2, 7]))  # rows that ENRICH was asked about would wait
            return False
        self.driver.step(at=at)
        self.rows = after
        self.out = self.out + wanted if self.query.arrival else wanted
        self.check(self.out)
        return True

    def check(self, wanted: Counter[tuple[Any, ...]]) -> None:
        found = Counter(tuple(row.values()) for row in self.driver.table("v"))
        if self.query.emit == " EMIT FINAL":
            assert not found - wanted, "what is final is in the batch answer"
        elif not self.query.emit:  # rows that are pending until the clock passes are compared in other tests
            assert found == wanted


@pytest.mark.parametrize("seed", seeds(8, times=3 * TIMES))
def test_an_epoch_fails_if_and_only_if_the_batch_query_does(seed: int) -> None:
    flow = Flow(seed)
    for _ in range(EPOCHS):
        flow.epoch()
        if flow.draw.random() < 0.15:
            flow.driver.restart(parallelism=flow.draw.choice([1, 2, 7]))


def test_both_outcomes_are_met() -> None:
    """The random flows fail often enough, and not too often."""
    outcomes = Counter[bool]()
    for seed in range(5):
        flow = Flow(seed)
        outcomes.update(flow.epoch() for _ in range(EPOCHS))
    assert min(outcomes[True], outcomes[False]) > 4

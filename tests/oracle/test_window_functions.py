"""Window functions over random partitions with ties, NULLs and equal rows, that come and go, against DuckDB.

Where a function depends on the order of rows that are equal in ORDER BY, DuckDB is given the order in full: the other
columns that the query uses, ascending, NULL first.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.testing import Driver
from tests.oracle.budget import budget

Row = dict[str, Any]
SOURCE = "CREATE CHANGELOG t (id INT, g STRING, x INT, y DOUBLE, d DATE)"
COLUMNS = ("id", "g", "x", "y", "d")
ORDERS = (
    ("x", False, True),
    ("x", True, False),
    ("x", False, False),
    ("y", True, True),
    ("d", False, True),
)
"""A column, whether it descends, whether NULL comes first."""
BY_ROW = (
    "row_number()",
    "lag(x)",
    "lead(y, 2)",
    "lag(id, 3, -1)",
    "lead(x, 1, id)",
    "lag(x, -1)",
    "lag(x) IGNORE NULLS",
    "lead(y) IGNORE NULLS",
    "ntile(3)",
)
BY_VALUE = ("rank()", "dense_rank()", "percent_rank()", "cume_dist()")
FRAMED = (
    "sum(x)",
    "sum(y)",
    "avg(x)",
    "count(y)",
    "count(*)",
    "min(y)",
    "max(x)",
    "first_value(id)",
    "last_value(x)",
    "nth_value(id, 2)",
    "first_value(y) IGNORE NULLS",
    "last_value(y) IGNORE NULLS",
    "nth_value(x, 2) IGNORE NULLS",
)
ROWS_FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING",
)
RANGE_FRAMES = (
    "",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING",
)
OF_VALUES = ("first_value", "last_value", "nth_value")


@dataclass(frozen=True)
class Windowed:
    """Columns of a query with windows, as we write them and as DuckDB must."""

    ours: str
    theirs: str


def order_by(order: tuple[str, bool, bool], *, ties: bool) -> str:
    name, descends, nulls_first = order
    words = f"{name}{' DESC' if descends else ''} NULLS {'FIRST' if nulls_first else 'LAST'}"
    rest = [f"{other} NULLS FIRST" for other in COLUMNS if other != name] if ties else []
    return ", ".join([words, *rest])


def windowed(call: str, order: tuple[str, bool, bool], partition: str, frame: str, *, ties: bool) -> Windowed:
    by = f"PARTITION BY {partition} " if partition else ""
    over = [f"{call} OVER ({by}ORDER BY {order_by(order, ties=each)} {frame})" for each in (False, ties)]
    spelled = call.removesuffix(" IGNORE NULLS")
    theirs = over[1].replace(call, f"{spelled[:-1]} IGNORE NULLS)", 1) if spelled != call else over[1]
    return Windowed(over[0], theirs)


def random_call(choice: random.Random) -> Windowed:
    order, partition = choice.choice(ORDERS), choice.choice(("g", "g", "", "g, x % 2"))
    kind = choice.random()
    if kind < 0.3:
        return windowed(choice.choice(BY_ROW), order, partition, "", ties=True)
    if kind < 0.45:
        return windowed(choice.choice(BY_VALUE), order, partition, "", ties=False)
    call = choice.choice(FRAMED)
    if kind < 0.75:
        frames = ROWS_FRAMES[:-2] if call.startswith("nth_value") else ROWS_FRAMES
        return windowed(call, order, partition, choice.choice(frames), ties=True)
    if kind < 0.8 and not call.startswith(OF_VALUES):
        text = f"{call} OVER ({f'PARTITION BY {partition}' if partition else ''})"
        return Windowed(text, text)
    frame = choice.choice(RANGE_FRAMES[:3] if order[0] == "d" else RANGE_FRAMES)
    if call.startswith(OF_VALUES):  # the order of equal rows matters, and DuckDB cannot be given it beside RANGE
        call = choice.choice(FRAMED[:7])
    return windowed(call, order, partition, frame, ties=False)


def view_and_query(calls: Sequence[Windowed]) -> tuple[str, str]:
    shown = ", ".join(COLUMNS)
    ours = ", ".join(f"{call.ours} AS w{at}" for at, call in enumerate(calls))
    theirs = ", ".join(f"{call.theirs} AS w{at}" for at, call in enumerate(calls))
    return f"SELECT {shown}, {ours} FROM t", f"SELECT {shown}, {theirs} FROM t"


def first_rows(choice: random.Random) -> tuple[str, str]:
    """The first rows of partitions, or of the relation."""
    order, most = choice.choice(ORDERS), choice.randrange(1, 5)
    shown = ", ".join(COLUMNS)
    words, full = order_by(order, ties=False), order_by(order, ties=True)
    if choice.random() < 0.4:
        limit = f"LIMIT {most}" + (f" OFFSET {choice.randrange(3)}" if choice.random() < 0.5 else "")
        return f"SELECT {shown} FROM t ORDER BY {words} {limit}", f"SELECT {shown} FROM t ORDER BY {full} {limit}"
    function = choice.choice(("row_number()", "rank()", "dense_rank()"))
    by = choice.choice(("PARTITION BY g ", "PARTITION BY g, x % 2 ", ""))
    more = choice.choice(("", f", lag(x) OVER ({by}ORDER BY {words}) AS p", f", max(y) OVER ({by}) AS m"))
    theirs = more.replace(words, full)
    condition = choice.choice((f"w <= {most}", f"{most} > w", f"w = {most}", f"w <= {most} AND x > 0"))
    ranked = [f"{function} OVER ({by}ORDER BY {each}) AS w" for each in (words, full if "row" in function else words)]
    if choice.random() < 0.5 and not more:
        test = condition.replace("w", ranked[0].removesuffix(" AS w"))
        ours = f"SELECT {shown}, {ranked[0]} FROM t QUALIFY {test}"
    else:
        ours = f"SELECT * FROM (SELECT {shown}, {ranked[0]}{more} FROM t) q WHERE {condition}"
    return ours, f"SELECT * FROM (SELECT {shown}, {ranked[1]}{theirs} FROM t) q WHERE {condition}"


def random_row(choice: random.Random, spread: int, ids: int) -> Row:
    def some(value: Any) -> Any:
        return None if choice.random() < 0.15 else value

    return {
        "id": choice.randrange(ids),
        "g": some(choice.choice("ab")),
        "x": some(choice.randrange(spread)),
        "y": some(choice.randrange(spread) / 4),
        "d": some(f"2024-01-{1 + choice.randrange(spread):02}"),
    }


@dataclass
class World:
    """A flow and a database with the same rows."""

    queries: list[tuple[str, str]]
    parallelism: int = 1
    has_equal_rows: bool = True
    rows: list[Row] = field(default_factory=list)
    sums: dict[str, Counter[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.driver = Driver(parallelism=self.parallelism)
        self.driver.sql(SOURCE)
        self.database = duckdb.connect()
        self.database.execute("SET threads = 1")
        self.database.execute("CREATE TABLE t (id INT, g VARCHAR, x INT, y DOUBLE, d DATE)")

    def create(self, which: Sequence[int]) -> None:
        for at in which:
            self.driver.sql(f"CREATE VIEW v{at} AS {self.queries[at][0]}")
            self.sums[f"v{at}"] = self.current(at)

    def epoch(self, choice: random.Random, changes: int, spread: int) -> None:
        for _ in range(changes):
            if self.rows and choice.random() < 0.45:
                row = self.rows.pop(choice.randrange(len(self.rows)))
                self.driver.delete("t", dated(row))
            else:
                is_copy = self.rows and self.has_equal_rows and choice.random() < 0.2
                ids = 4 if self.has_equal_rows else 1 << 30
                row = choice.choice(self.rows) if is_copy else random_row(choice, spread, ids)
                self.rows.append(row)
                self.driver.insert("t", dated(row))
        changed = self.driver.step()
        self.database.execute("DELETE FROM t")
        if self.rows:
            self.database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [list(row.values()) for row in self.rows])
        for view, known in self.sums.items():
            for row, diff in changed.get(view, []):
                known[key(row.values())] += diff

    def current(self, at: int) -> Counter[Any]:
        return Counter(key(row.values()) for row in self.driver.table(f"v{at}"))

    def check(self) -> None:
        for view, known in self.sums.items():
            at = int(view[1:])
            expected = Counter(key(row) for row in self.database.execute(self.queries[at][1]).fetchall())
            found = self.current(at)
            assert found == expected, (
                self.queries[at],
                sorted((found - expected).items(), key=repr),
                sorted((expected - found).items(), key=repr),
            )
            assert +known == expected, (self.queries[at], "the changes do not add up")


def dated(row: Row) -> Row:
    return {**row, "d": None if row["d"] is None else date.fromisoformat(row["d"])}


def key(row: Any) -> tuple[Any, ...]:
    return tuple(round(value, 9) if isinstance(value, float) else value for value in row)


def run(
    seed: int,
    *,
    parallelism: int = 1,
    epochs: int = 5,
    changes: int = 8,
    spread: int = 4,
    views: int = 4,
    firsts: bool = False,
) -> None:
    choice = random.Random(seed)
    most = (
        1 if firsts else choice.choice((1, 3))
    )  # which value of one function goes with which of another is open for equal rows
    queries = [
        first_rows(choice) if firsts else view_and_query([random_call(choice) for _ in range(choice.randint(1, most))])
        for _ in range(views)
    ]
    world = World(queries, parallelism, most == 1)
    world.create(range(0, views, 2))
    for number in range(epochs):
        world.epoch(choice, choice.randrange(1, changes), spread)
        if choice.random() < 0.2:
            world.driver.restart(parallelism=choice.choice([1, parallelism, 3]))
        if number == epochs // 2:
            world.create(range(1, views, 2))
        world.check()


@budget(2, deep=8)
@given(st.integers(0, 1 << 32))
def test_values_are_those_of_a_batch(seed: int) -> None:
    run(seed)


@budget(2, deep=8)
@given(st.integers(0, 1 << 32))
def test_first_rows_are_those_of_a_batch(seed: int) -> None:
    run(seed, firsts=True)


@pytest.mark.parametrize("firsts", [False, True])
@pytest.mark.parametrize("parallelism", [1, 7])
def test_long_partitions(parallelism: int, firsts: bool) -> None:
    run(parallelism, parallelism=parallelism, epochs=8, changes=60, spread=25, firsts=firsts)

"""Validity windows and joins as of a time, over versions that arrive in any order and are deleted, against DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.testing import Driver
from tests.oracle.budget import budget

Row = dict[str, Any]
SOURCES = """
CREATE CHANGELOG orders (id INT, cur STRING, ts TIMESTAMP);
CREATE CHANGELOG rates (cur STRING, rate INT, ts TIMESTAMP);
CREATE TABLE names (cur STRING, name STRING, PRIMARY KEY (cur));
"""
TABLES = """
CREATE TABLE orders (id INT, cur VARCHAR, ts TIMESTAMP);
CREATE TABLE rates (cur VARCHAR, rate INT, ts TIMESTAMP);
CREATE TABLE names (cur VARCHAR, name VARCHAR);
"""
ENDED = """(SELECT r.cur, r.rate, r.ts, coalesce(
    (SELECT min(q.ts) FROM rates q WHERE q.cur IS NOT DISTINCT FROM r.cur AND q.ts > r.ts), TIMESTAMP '9999-12-31') AS e
  FROM rates r WHERE r.ts IS NOT NULL)"""
ALL_ENDED = ENDED.replace("q.cur IS NOT DISTINCT FROM r.cur AND ", "")
WINDOWS = "(SELECT cur, MAX(rate) AS rate, VALIDITY_WINDOW(ts) AS w FROM rates GROUP BY cur, VALIDITY_WINDOW(ts))"
GROUPED = f"(SELECT cur, MAX(rate) AS rate, ts, e FROM {ENDED} z GROUP BY cur, ts, e)"


@dataclass(frozen=True)
class Asked:
    """A query, and the same for DuckDB."""

    text: str
    duckdb: str


def as_of(kind: str, shown: str, strict: bool) -> Asked:
    """An ASOF join of orders and rates."""
    signs = (">", "<", "<=") if strict else (">=", "<=", "<")
    matched = f"{kind} JOIN rates r MATCH_CONDITION (o.ts {signs[0]} r.ts) ON o.cur = r.cur"
    inside = f"o.cur = r.cur AND r.ts {signs[1]} o.ts AND o.ts {signs[2]} r.e"
    return Asked(
        f"SELECT {shown} FROM orders o ASOF {matched}",
        f"SELECT {shown} FROM orders o {kind} JOIN {ENDED} r ON {inside}",
    )


def contained(kind: str, shown: str, more: str = "") -> Asked:
    """A join of orders with the validity windows of rates; a third input may follow."""
    inside = "o.cur = v.cur AND WINDOW_START(v.w) <= o.ts AND o.ts < WINDOW_END(v.w)"
    there = "o.cur = v.cur AND v.ts <= o.ts AND o.ts < v.e"
    in_duckdb = shown.replace("WINDOW_START(v.w)", "v.ts").replace("WINDOW_END(v.w)", "v.e")
    return Asked(
        f"SELECT {shown} FROM orders o {kind} JOIN {WINDOWS} v ON {inside}{more}",
        f"SELECT {in_duckdb} FROM orders o {kind} JOIN {GROUPED} v ON {there}{more}",
    )


def queries() -> Iterator[Asked]:
    for kind in ("", "LEFT"):
        for strict in (False, True):
            yield as_of(kind, "o.id, r.rate", strict)
            yield as_of(kind, "o.id, r.rate, r.ts", strict)
        yield Asked(
            f"SELECT o.id, r.rate FROM orders o ASOF {kind} JOIN rates r MATCH_CONDITION (o.ts >= r.ts)",
            f"SELECT o.id, r.rate FROM orders o {kind} JOIN {ALL_ENDED} r ON r.ts <= o.ts AND o.ts < r.e",
        )
    for kind in ("", "LEFT", "FULL"):
        yield contained(kind, "o.id, v.rate")
        yield contained(kind, "o.id, v.rate, WINDOW_START(v.w) AS s")
        yield contained(kind, "o.id, v.rate, WINDOW_END(v.w) AS e")
        yield contained(kind, "o.id, v.rate, n.name", " JOIN names n ON n.cur = o.cur")
    yield Asked(
        f"SELECT cur, rate, WINDOW_START(w) AS s, WINDOW_END(w) AS e FROM {WINDOWS} v",
        f"SELECT cur, rate, ts, e FROM {GROUPED} v",
    )


ASKED = list(queries())


@dataclass
class Played:
    """A flow and DuckDB, to which the same happens."""

    asked: Asked
    numbers: random.Random
    present: dict[str, list[Row]] = field(default_factory=lambda: {"orders": [], "rates": []})
    names: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.driver = Driver(parallelism=self.numbers.choice([1, 2, 3]))
        self.driver.sql(SOURCES)
        self.oracle = duckdb.connect()
        self.oracle.execute(TABLES)

    def happen(self) -> None:
        """Let rows come and go, and run an epoch; sometimes start anew after it."""
        pick = self.numbers
        times = [None, *(f"2024-01-01 00:{minute:02d}:00" for minute in range(12))]
        for name, rows in self.present.items():
            for _ in range(pick.randrange(4)):
                if rows and pick.random() < 0.35:
                    self.driver.delete(name, rows.pop(pick.randrange(len(rows))))
                    continue
                number = {"id": pick.randrange(3)} if name == "orders" else {"rate": pick.randrange(3)}
                row = {**number, "cur": pick.choice([None, "a", "a", "b"]), "ts": pick.choice(times)}
                rows.append(row)
                self.driver.insert(name, row)
        if pick.random() < 0.4:
            currency = pick.choice("ab")
            self.names[currency] = {"cur": currency, "name": str(pick.random())}
            self.driver.insert("names", self.names[currency])
        self.driver.step()
        if pick.random() < 0.2:
            self.driver.restart(parallelism=pick.choice([1, 2, 3]))

    def check(self) -> None:
        """Compare the view with DuckDB's answer, and with the sum of its changes."""
        for name, rows in {**self.present, "names": list(self.names.values())}.items():
            self.oracle.execute(f"DELETE FROM {name}")
            for row in rows:
                places = ", ".join("?" * len(row))
                self.oracle.execute(f"INSERT INTO {name} ({', '.join(row)}) VALUES ({places})", [*row.values()])
        wanted = Counter(self.oracle.execute(self.asked.duckdb).fetchall())
        assert Counter(tuple(row.values()) for row in self.driver.table("v")) == wanted
        summed: Counter[tuple[Any, ...]] = Counter()
        for row in self.driver.stream("v"):
            values = tuple(value for name, value in row.items() if not name.startswith("_"))
            summed[values] += -1 if row["_undo"] else 1
        assert +summed == wanted and min(summed.values(), default=0) >= 0


@pytest.mark.parametrize("asked", ASKED, ids=[asked.text for asked in ASKED])
@budget(1, deep=2)
@given(seed=st.integers(0, 2**32), defined_at=st.sampled_from([0, 0, 3]))
def test_versions_out_of_order(asked: Asked, seed: int, defined_at: int) -> None:
    played = Played(asked, random.Random(seed))
    for epoch in range(6):
        if epoch == defined_at:
            played.driver.sql(f"CREATE VIEW v AS {asked.text}")
        played.happen()
        if epoch >= defined_at:
            played.check()

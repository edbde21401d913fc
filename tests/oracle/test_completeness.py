"""Complete or refused, at random: views come and go over rows of which some are late.

Whatever is created or asked equals DuckDB's answer over every row delivered so far, or is refused with `Incomplete`.
From then on a view with bounded state leaves late rows out, and any other view takes them. Sources in memory and files
are never refused; a topic is not while a view keeps all its rows.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rejoinder import errors
from rejoinder.testing import Driver
from tests.deep import TIMES, seeds
from tests.oracle.sources import declare

Row = dict[str, Any]
START = datetime(2026, 1, 1)
DELAY = 5
COLUMNS = f"(k INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL {DELAY} MINUTES)"


@dataclass(frozen=True)
class Shape:
    """A query: for us, for DuckDB, the streams that it reads, and whether it leaves late rows out."""

    query: str
    batch: str
    reads: str
    bounded: bool


def _join(kind: str, minutes: int, other: str = "t") -> Shape:
    text = (
        f"SELECT a.k, a.ts AS x, b.ts AS y FROM s a {kind} JOIN {other} b "
        f"ON a.k = b.k AND b.ts >= a.ts - INTERVAL {{}} AND b.ts <= a.ts + INTERVAL {{}}"
    )
    ours, theirs = text.format(*[f"{minutes} MINUTES"] * 2), text.format(*[f"'{minutes} minutes'"] * 2)
    return Shape(ours, theirs, "s" + (other if other != "s" else ""), bounded=True)


SHAPES = {
    "copy": Shape("SELECT k, ts FROM s", "SELECT k, ts FROM s", "s", bounded=False),
    "keys": Shape("SELECT DISTINCT k FROM t", "SELECT DISTINCT k FROM t", "t", bounded=False),
    "named": Shape(
        "SELECT s.k, ts, name FROM s LEFT JOIN p ON s.k = p.k",
        "SELECT s.k, ts, name FROM s LEFT JOIN p ON s.k = p.k",
        "s",
        bounded=False,
    ),
    "hours": Shape(
        "SELECT TUMBLE(ts, INTERVAL 1 HOUR).start AS w, count(*) AS n, max(k) AS m FROM s "
        "GROUP BY TUMBLE(ts, INTERVAL 1 HOUR)",
        "SELECT time_bucket(INTERVAL '1 hour', ts) AS w, count(*) AS n, max(k) AS m FROM s GROUP BY 1",
        "s",
        bounded=True,
    ),
    "total": Shape(
        "SELECT sum(n) AS n FROM (SELECT TUMBLE(ts, INTERVAL 1 HOUR) AS w, count(*) AS n FROM s "
        "GROUP BY TUMBLE(ts, INTERVAL 1 HOUR))",
        "SELECT CASE WHEN count(*) > 0 THEN count(*) END AS n FROM s",
        "s",
        bounded=False,
    ),
    "near": _join("INNER", 10),
    "wide": _join("INNER", 40),
    "left": _join("LEFT", 15),
    "pairs": _join("INNER", 10, "s"),
}


@dataclass
class World:
    """A flow, the rows that were delivered to it, and when its views were created."""

    pick: random.Random
    folder: Path
    format: str
    driver: Driver = field(init=False)
    rows: dict[str, list[tuple[Row, int, bool]]] = field(default_factory=lambda: {"s": [], "t": []})
    names: dict[int, str] = field(default_factory=dict)
    created: dict[str, tuple[str, int]] = field(default_factory=dict)
    refused: int = 0
    now: int = 0

    def __post_init__(self) -> None:
        self.driver = Driver(store=self.folder / "state", parallelism=self.pick.choice([1, 7]))
        declare(self.driver, COLUMNS, self.format, self.folder)
        self.create("anchor", "near")  # a source that nobody reads would not be fed

    # -- what happens -------------------------------------------------------------------------------------------------

    def epoch(self) -> None:
        pick = self.pick
        self.now += pick.choice([1, 5, 20, 70])
        marks: dict[str, datetime] = {name: self.watermark(name) for name in self.rows}
        for name in self.rows:
            times = [self.now - pick.choice([0, 0, 1, 3, 9, 30, 200]) for _ in range(pick.randrange(5))]
            new: list[Row] = [{"k": pick.randrange(3), "ts": START + timedelta(minutes=time)} for time in times]
            self.deliver(name, new)
            self.rows[name] += [(row, self.driver.epoch + 1, row["ts"] < marks[name]) for row in new]
        if pick.random() < 0.3:
            key, name = pick.randrange(3), pick.choice("xyz")
            self.driver.insert("p", {"k": key, "name": name})
            self.names[key] = name
        self.driver.step()
        self.check()

    def deliver(self, name: str, new: list[Row]) -> None:
        if self.format != "files":
            self.driver.insert(name, *new)
        elif new:
            path = self.folder / name / f"{self.driver.epoch + 1}.json"
            path.write_text("".join(json.dumps({**row, "ts": str(row["ts"])}) + "\n" for row in new))

    def watermark(self, name: str) -> datetime:
        """Rows below it are late: the largest time delivered so far, minus the delay."""
        times = [row["ts"] for row, _, _ in self.rows[name]]
        return max(times, default=datetime(1970, 1, 1)) - timedelta(minutes=DELAY)

    def create(self, view: str, shape: str) -> None:
        try:
            self.driver.sql(f"CREATE VIEW {view} AS {SHAPES[shape].query}")
        except errors.Incomplete:
            self.check_refusal(shape)
            return
        self.created[view] = shape, self.driver.epoch
        self.check()

    def ask(self, shape: str) -> None:
        try:
            found = self.driver.sql(SHAPES[shape].query)
        except errors.Incomplete:
            self.check_refusal(shape)
            return
        assert _counted(found) == self.wanted(shape, self.driver.epoch), shape

    def drop(self) -> None:
        views = [view for view in self.created if view != "anchor"]
        if views:
            view = self.pick.choice(views)
            self.driver.sql(f"DROP VIEW {view}")
            del self.created[view]

    # -- what must be -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        for view, (shape, created) in self.created.items():
            assert _counted(self.driver.table(view)) == self.wanted(shape, created), (view, shape, created)

    def check_refusal(self, shape: str) -> None:
        self.refused += 1
        assert self.format == "topic"
        whole = {name for kept, _ in self.created.values() if not SHAPES[kept].bounded for name in SHAPES[kept].reads}
        assert not set(SHAPES[shape].reads) <= whole, "a view keeps all rows of the sources"

    def wanted(self, shape: str, created: int) -> Counter[tuple[Any, ...]]:
        """DuckDB's answer over what was delivered: late rows that came after the view only if it takes them."""
        connection = duckdb.connect()
        for name, rows in self.rows.items():
            connection.execute(f"CREATE TABLE {name} (k INT, ts TIMESTAMP)")
            bounded = SHAPES[shape].bounded
            seen = [(row["k"], row["ts"]) for row, epoch, late in rows if epoch <= created or not (late and bounded)]
            if seen:
                connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", seen)
        connection.execute("CREATE TABLE p (k INT, name TEXT)")
        if self.names:
            connection.executemany("INSERT INTO p VALUES (?, ?)", list(self.names.items()))
        return Counter(connection.execute(SHAPES[shape].batch).fetchall())


def _counted(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("format_", ["memory", "topic", "files"])
@pytest.mark.parametrize("seed", seeds(1, times=3 * TIMES))
def test_an_answer_is_complete_or_refused(seed: int, format_: str, tmp_path: Path) -> None:
    pick = random.Random(seed)
    world = World(pick, tmp_path, format_)
    for number in range(24):
        match pick.choice(["epoch", "epoch", "epoch", "create", "create", "ask", "ask", "drop", "restart"]):
            case "create":
                world.create(f"v{number}", pick.choice(list(SHAPES)))
            case "ask":
                world.ask(pick.choice(list(SHAPES)))
            case "drop":
                world.drop()
            case "restart":
                world.driver.restart(parallelism=pick.choice([1, 7]))
            case _:
                world.epoch()
    world.epoch()

"""Deletes of a changelog with a watermark, at random: valid, late, of rows that never existed, and deleted twice.

Each view equals the batch answer over the changes that it takes: a view with bounded state leaves late ones out, any
other takes all. A delete of a row that exists never fails. A delete of a row that does not exist fails the epoch if it
is on time, or if every row is kept; otherwise it changes nothing. No answer to valid input depends on other views.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rejoinder import errors
from rejoinder.testing import Driver
from tests.deep import IS_DEEP, seeds

Row = tuple[int, int]
Rows = Counter[Row]
DELAY, RETAINED, NEVER = 5, 50, -(10**9)
COLUMNS = f"(id INT, t BIGINT, WATERMARK t DELAY OF {DELAY})"
STORED = {
    "memory": "",
    "topic": "USING kafka OPTIONS (topic 'c', format 'json', `kafka.bootstrap.servers` 'h:1', op 'op')",
    "files": "USING json OPTIONS (path '{folder}/c', op 'op')",
}
RETAIN = ["", "RETAIN ALL", f"RETAIN {RETAINED}"]
WITHIN = "ON c.id = s.id AND s.t BETWEEN c.t - 10 AND c.t + 10"


@dataclass(frozen=True)
class Shape:
    """A query, its batch answer over the rows of `c` and of `s`, and whether it leaves late changes out."""

    query: str
    answer: Callable[[Rows, Rows], Counter[Any]]
    bounded: bool


def _near(c: Rows, s: Rows) -> Counter[Any]:
    return Counter(
        {(*a, b[1]): n * m for a, n in c.items() for b, m in s.items() if a[0] == b[0] and abs(a[1] - b[1]) <= 10}
    )


def _left(c: Rows, s: Rows) -> Counter[Any]:
    pairs = _near(c, s)
    return pairs + Counter({(*a, None): n for a, n in c.items() if a not in {pair[:2] for pair in pairs}})


def _grouped(column: int, rows: Rows) -> Counter[Any]:
    counts: Counter[int] = Counter()
    for row, copies in rows.items():
        counts[row[column]] += copies
    return Counter(counts.items())


SHAPES = {
    "copy": Shape("SELECT id, t FROM c", lambda c, s: c, bounded=False),
    "ids": Shape("SELECT id, count(*) AS n FROM c GROUP BY id", lambda c, s: _grouped(0, c), bounded=False),
    "named": Shape("SELECT c.id, t FROM c LEFT JOIN p ON c.id = p.id", lambda c, s: c, bounded=False),
    "times": Shape("SELECT t, count(*) AS n FROM c GROUP BY t", lambda c, s: _grouped(1, c), bounded=True),
    "near": Shape(f"SELECT c.id, c.t, s.t AS u FROM c JOIN s {WITHIN}", _near, bounded=True),
    "left": Shape(f"SELECT c.id, c.t, s.t AS u FROM c LEFT JOIN s {WITHIN}", _left, bounded=True),
}
BOUNDED = [name for name, shape in SHAPES.items() if shape.bounded]


@dataclass
class Taken:
    """A view and the rows that it has taken of each source."""

    shape: Shape
    rows: dict[str, Rows]
    late: int = 0


@dataclass
class World:
    """A flow over changelog `c` and stream `s`, and what must be in it.

    `rows` is all that was delivered. A delete that could not be checked may leave a negative count there.
    """

    folder: Path
    stored: str
    retain: str
    parallelism: int
    driver: Driver = field(init=False)
    rows: dict[str, Rows] = field(default_factory=lambda: {"c": Counter(), "s": Counter()})
    latest: dict[str, int] = field(default_factory=lambda: {"c": NEVER, "s": NEVER})
    views: dict[str, Taken] = field(default_factory=dict)
    refused: int = 0
    unchecked: int = 0

    def __post_init__(self) -> None:
        (self.folder / "c").mkdir(parents=True)
        self.driver = Driver(store=self.folder / "state", parallelism=self.parallelism)
        where = STORED[self.stored].format(folder=self.folder)
        self.driver.sql(f"CREATE CHANGELOG c {COLUMNS} {self.retain} {where}; CREATE STREAM s {COLUMNS}")
        self.driver.sql("CREATE TABLE p (id INT, PRIMARY KEY (id))")

    # -- what happens -------------------------------------------------------------------------------------------------

    def create(self, view: str, name: str) -> None:
        """Create a view. It starts with every row that was delivered, late ones included."""
        shape = SHAPES[name]
        try:
            self.driver.sql(f"CREATE VIEW {view} AS {shape.query}")
        except errors.Incomplete:
            assert self.stored == "topic" and not self.keeps_all
            return
        if not shape.bounded:
            self.rows["c"] = +self.rows["c"]  # from now on all rows are kept, and every delete is checked
        self.views[view] = Taken(shape, {source: +rows for source, rows in self.rows.items()})

    def drop(self, view: str) -> None:
        self.driver.sql(f"DROP VIEW {view}")
        del self.views[view]

    def epoch(self, changes: Rows, stream: Rows) -> None:
        """Deliver changes of `c`, negative ones as deletes, and rows of `s`."""
        self.deliver(changes)
        self.driver.insert("s", *(_named(row) for row in stream.elements()))
        missing = {row for row, copies in changes.items() if copies < 0 and self.rows["c"][row] + copies < 0}
        if any(self.is_checked(row) for row in missing):
            with pytest.raises(errors.MissingRow):
                self.driver.step()
            (self.folder / "c" / f"{self.driver.epoch + 1}.json").unlink(missing_ok=True)
            self.refused += 1
            return
        self.driver.step()
        self.unchecked += len(missing)
        for source, delta in (("c", changes), ("s", stream)):
            mark = self.watermark(source)
            for taken in self.views.values():
                for row, copies in delta.items():
                    if row[1] >= mark or not taken.shape.bounded:
                        taken.rows[source][row] += copies
                    elif source == "c":
                        taken.late += abs(copies)
            self.rows[source].update(delta)
            self.latest[source] = max([self.latest[source], *(row[1] for row in delta)])

    def deliver(self, changes: Rows) -> None:
        if self.stored == "files":
            records = [
                {**_named(row), "op": "I" if n > 0 else "D"} for row, n in changes.items() for _ in range(abs(n))
            ]
            path = self.folder / "c" / f"{self.driver.epoch + 1}.json"
            if records:
                path.write_text("".join(json.dumps(record) + "\n" for record in records))
            return
        self.driver.insert("c", *(_named(row) for row in (+changes).elements()))
        self.driver.delete("c", *(_named(row) for row in (-changes).elements()))

    # -- what must be -------------------------------------------------------------------------------------------------

    def watermark(self, source: str) -> int:
        return self.latest[source] - DELAY

    @property
    def keeps_all(self) -> bool:
        """Whether every row of `c` is kept: by its definition, or because a view takes all changes."""
        declared = self.stored == "memory" or self.retain == "RETAIN ALL"
        return declared or any(not taken.shape.bounded for taken in self.views.values())

    def is_checked(self, row: Row) -> bool:
        """Whether a delete of a row fails if there is no such row."""
        retained = RETAINED if self.retain == f"RETAIN {RETAINED}" else 0
        return self.keeps_all or row[1] >= self.watermark("c") - retained

    def check(self) -> None:
        for name, taken in self.views.items():
            wanted = taken.shape.answer(+taken.rows["c"], +taken.rows["s"])
            assert min(taken.rows["c"].values(), default=0) >= 0
            assert _counted(self.driver.table(name)) == wanted, name
            assert all(copies > 0 for _, copies in _net(self.driver.stream(name)).items()), name
            assert sum(row["input"] == "c" for row in self.driver.late(name)) == taken.late
        if self.stored != "topic" or self.keeps_all:
            assert _counted(self.driver.sql("SELECT id, t FROM c")) == +self.rows["c"]


def _named(row: Row) -> dict[str, int]:
    return {"id": row[0], "t": row[1]}


def _counted(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in rows)


def _net(stream: list[dict[str, Any]]) -> Counter[Any]:
    """The changes of a view added up; what adds up to zero is left out."""
    found: Counter[Any] = Counter()
    for row in stream:
        values = tuple(value for name, value in row.items() if not name.startswith("_"))
        found[values] += -1 if row["_undo"] else 1
    return Counter({values: copies for values, copies in found.items() if copies})


@dataclass
class Script:
    """Random changes. Deletes are of rows that exist, unless `bad` ones are wanted too."""

    draw: random.Random
    now: int = 0
    deleted: list[Row] = field(default_factory=list)

    def changes(self, rows: Rows, *, bad: bool) -> tuple[Rows, Rows]:
        draw = self.draw
        self.now += draw.choice([0, 1, 4, 20, 70])
        changes: Rows = Counter(self.row() for _ in range(draw.randrange(4)))
        existing = sorted((+rows).elements())
        for row in draw.sample(existing, min(len(existing), draw.randrange(3))):
            changes[row] -= 1
            self.deleted.append(row)
        if bad and draw.random() < 0.3:
            never = (9, self.now - draw.choice([0, 3, 30, 60, 200]))
            changes[draw.choice([never, *self.deleted[-3:], *existing[:1]])] -= draw.choice([1, 2])
        return Counter({row: n for row, n in changes.items() if n}), Counter(
            self.row() for _ in range(draw.randrange(3))
        )

    def row(self) -> Row:
        return self.draw.randrange(3), self.now - self.draw.choice([0, 0, 1, 3, 8, 30, 100])


@pytest.mark.parametrize("retain", RETAIN)
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("seed", seeds(1))
def test_deletes_are_checked_or_change_nothing(seed: int, stored: str, retain: str, tmp_path: Path) -> None:
    draw = random.Random(f"{seed} {stored} {retain}")
    world, script = World(tmp_path, stored, retain, draw.choice([1, 3])), Script(draw)
    world.create("anchor", draw.choice(BOUNDED))
    for number in range(20 if IS_DEEP else 12):
        match draw.choice(["epoch", "epoch", "epoch", "create", "restart"]):
            case "create":
                world.create(f"v{number}", draw.choice(BOUNDED if number < 8 else list(SHAPES)))
            case "restart":
                world.driver.restart(parallelism=draw.choice([1, 3]))
            case _:
                world.epoch(*script.changes(world.rows["c"], bad=True))
        world.check()


def _cases() -> list[tuple[int, str, str, str]]:
    """Each shape over one kind of source; in a deep search over all kinds, with many seeds."""
    kinds = list(product(STORED, RETAIN))
    chosen = {name: kinds if IS_DEEP else [kinds[4 * at % len(kinds)]] for at, name in enumerate(SHAPES)}
    return [(seed, name, *kind) for seed in seeds(1) for name, each in chosen.items() for kind in each]


@pytest.mark.parametrize(("seed", "shape", "stored", "retain"), _cases())
def test_valid_deletes_do_not_depend_on_other_views(
    seed: int, shape: str, stored: str, retain: str, tmp_path: Path
) -> None:
    draw = random.Random(f"{seed} {shape} {stored} {retain}")
    script = Script(draw)
    plain = World(tmp_path / "plain", stored, retain, 1)
    crowded = World(tmp_path / "crowded", stored, retain, 3)
    crowded.create("other", draw.choice(list(SHAPES)))
    for world in (plain, crowded):
        world.create("v", shape)
    for number in range(12):
        if number in (2, 5):
            crowded.create(f"other{number}", draw.choice(list(SHAPES)))
        if number == 8:
            crowded.drop("other")
        changes = script.changes(plain.rows["c"], bad=False)
        for world in (plain, crowded):
            world.epoch(*changes)
            if draw.random() < 0.2:
                world.driver.restart()
            world.check()
        assert (plain.refused, crowded.refused) == (0, 0)
        assert _counted(plain.driver.table("v")) == _counted(crowded.driver.table("v"))
        assert _counted(plain.driver.late("v")) == _counted(crowded.driver.late("v"))

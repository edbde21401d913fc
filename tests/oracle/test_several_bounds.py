"""Joins with several bounds in time: a row goes, or is padded for good, when the first has passed.

In the end the answer is the batch join of the rows that were not late, and nothing is kept. On the way no row of an
inner join is needed that could match nothing that is still to come.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.runtime.task import expiry_of
from rejoinder.store.runs.run import read_run
from rejoinder.testing import Driver
from tests.oracle.batch_join import KINDS, batch_join
from tests.oracle.budget import budget

Row = dict[str, Any]
EPOCHS, EVER, FAR = 8, 10_000, 2**63 - 1
NAMES = ("k", "t", "u", "due")
FURTHER = {  # conditions beside the bound between l.t and r.t: what l, or r, can be behind (column, how far, clock)
    "r.t <= l.due": ("l", "due", 0, "t"),
    "r.u <= l.due": ("l", "due", 0, "u"),
    "r.u < l.u + 3": ("l", "u", 2, "u"),
    "r.t DIV 4 <= l.due DIV 4": None,
    "l.t <= r.due": ("r", "due", 0, "t"),
    "l.u - 2 <= r.u": ("r", "u", 2, "u"),
    "l.u <= r.due + 1": ("r", "due", 1, "u"),
}


@dataclass
class Played:
    """A flow of two streams, each with two event times and one that is none and may be NULL or far away."""

    kind: str
    is_final: bool
    numbers: random.Random
    rows: dict[str, list[Row]] = field(default_factory=lambda: {"l": [], "r": []})
    watermarks: dict[tuple[str, str], int] = field(default_factory=dict)
    out: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        pick = self.numbers
        before, after = pick.randrange(5), pick.randrange(7)
        self.further = pick.sample(sorted(FURTHER), pick.randrange(1, 4))
        self.is_due = pick.random() < 0.3  # no event time bounds how long a left row can match
        self.bounds = [("l", "due", 0, "t") if self.is_due else ("l", "t", after, "t"), ("r", "t", before, "t")]
        self.bounds += [found for each in self.further if (found := FURTHER[each]) is not None]
        until = "l.due" if self.is_due else f"l.t + {after}"
        self.on = " AND ".join([f"r.t BETWEEN l.t - {before} AND {until}", *self.further])
        self.on += " AND l.k = r.k" if pick.random() < 0.8 else ""
        sides = "l" if self.kind in ("LEFT SEMI", "LEFT ANTI") else "lr"
        shown = ", ".join(f"{side}.{name} AS {side}_{name}" for side in sides for name in NAMES)
        moved = "(SELECT k, t - 1 AS t, u, due FROM s) l" if pick.random() < 0.3 else "l"
        self.query = f"SELECT {shown} FROM {moved} {self.kind} JOIN r ON {self.on}"
        self.left = "l" if moved == "l" else "s"
        self.driver = Driver(parallelism=pick.choice([1, 2, 3]))
        for side in (self.left, "r"):
            self.driver.sql(f"CREATE STREAM {side} (k INT, t INT, u BIGINT, due BIGINT, WATERMARK t, WATERMARK u)")
        self.driver.sql(f"CREATE VIEW v AS {self.query}{' EMIT FINAL' if self.is_final else ''}")

    def epoch(self, number: int) -> None:
        """Rows around a time that goes on, and watermarks that follow it more or less, each column on its own."""
        pick, moved = self.numbers, {}
        for side in "lr":
            name, behind = (self.left, int(self.left == "s")) if side == "l" else ("r", 0)
            for _ in range(pick.randrange(4)):
                at = max(0, 3 * number + pick.randrange(-9, 4))
                row: Row = {"k": pick.choice([None, 1, 2]), "t": at, "u": at + pick.randrange(-3, 5)}
                row["due"] = pick.choice(
                    [None, EVER - 9 if self.is_due else FAR - 2, at + pick.randrange(-2, 9), at + pick.randrange(-2, 9)]
                )
                self.driver.insert(name, row)
                if all(row[column] >= self.watermarks.get((side, column), -EVER) for column in "tu"):
                    self.rows[side].append({**row, "t": at - behind})
            for column in "tu":
                if pick.random() < 0.5:
                    known = self.watermarks.get((side, column), -10)
                    moved[side, column] = max(known, 3 * number - 9) + pick.randrange(1, 5)
                    self.driver.watermark(name, moved[side, column], column)
        self.step()
        self.watermarks |= moved
        if not self.kind:
            self.check_needed()
        if pick.random() < 0.2:
            self.driver.restart(parallelism=pick.choice([1, 2, 3]))

    def step(self) -> None:
        for row, diff in self.driver.step()["v"]:
            assert diff > 0 or not self.is_final, "a final row is never retracted"
            self.out[tuple(row.values())] += diff

    def check_needed(self) -> None:
        """The rows of an inner join that are not over are those for which no bound has passed."""
        engine = self.driver._engine
        kept_by = engine.dataflow.retentions
        expiry = {name: expiry_of(kept, engine.version.times) for name, kept in kept_by.items()}
        for side, other in ("lr", "rl"):
            behind = {"l": 0, "r": int(self.left == "s")}[side]  # of times that come, behind their watermark
            own = self.left if side == "l" else "r"
            kept = [name for name in engine.version.state.arrangements if name.startswith(f"{own}#on-time")]
            refs = [
                (name, ref) for name in kept for part in engine.version.state.arrangements[name] for ref in part.refs
            ]
            found = sum(expiry[name].drop_expired(read_run(engine.store, ref)).num_rows for name, ref in refs)
            bounds = [(column, slack, clock) for whose, column, slack, clock in self.bounds if whose == side]
            wanted = 0
            for row in self.rows[side]:
                limits = [
                    row[column] is not None
                    and row[column] + slack >= self.watermarks.get((other, clock), -EVER) - behind * (clock == "t")
                    for column, slack, clock in bounds
                ]
                wanted += all(limits)
            assert found <= wanted * max(1, len(kept)), (side, self.query)

    def wanted(self) -> Counter[tuple[Any, ...]]:
        """DuckDB's answer over the rows that were not late."""
        on = self.on.replace(" DIV ", " // ")
        query = self.query.replace("(SELECT k, t - 1 AS t, u, due FROM s) l", "l").replace(self.on, on)
        tables = {side: ("k INT, t INT, u BIGINT, due BIGINT", rows) for side, rows in self.rows.items()}
        return batch_join(tables, self.kind, on, NAMES, query)


@pytest.mark.parametrize("is_final", [True, False], ids=["final", "changes"])
@pytest.mark.parametrize("kind", KINDS, ids=[kind or "INNER" for kind in KINDS])
@budget(1, deep=2)
@given(seed=st.integers(0, 2**32))
def test_the_end_is_the_batch_join_of_what_was_on_time(kind: str, is_final: bool, seed: int) -> None:
    played = Played(kind, is_final, random.Random(seed))
    for number in range(EPOCHS):
        played.epoch(number)
    for name in (played.left, "r"):
        for column in "tu":
            played.driver.watermark(name, EVER, column)
    played.step()
    assert +played.out == played.wanted() and min(played.out.values(), default=0) >= 0
    parts = played.driver._engine.version.state.arrangements.values()
    assert sum(ref.rows for spines in parts for part in spines for ref in part.refs) == 0

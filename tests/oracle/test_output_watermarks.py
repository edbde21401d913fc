"""Output watermarks of joins of joins over random out-of-order streams: no change is below them.

After each epoch every column of a view has a watermark, which no later change is below. It is at least as far as the
bounds of the joins give alone. What EMIT FINAL emits is never retracted, and is the batch answer in the
end over the rows that were not late: wherever it crashed, and whoever else keeps the same rows for longer.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.testing import Driver
from rejoinder.watermarks.formula import Formula, Lifted, RetainedMinimum, Watermark, least, lift, value_of
from tests.deep import IS_DEEP
from tests.oracle.budget import budget

EPOCHS, EVER = 12 if IS_DEEP else 6, 100_000
NEAR = "{0}.k = {1}.k AND {1}.t BETWEEN {0}.t AND {0}.t + 6"
LEFT = f"SELECT a.k, a.t, a.u, b.t AS bt FROM a LEFT JOIN b ON {NEAR.format('a', 'b')}"
INNER = LEFT.replace("LEFT JOIN", "JOIN")
QUERIES = {
    "join": f"SELECT a.k, a.t, a.u, b.t AS bt, b.u AS bu FROM a JOIN b ON {NEAR.format('a', 'b')}",
    "groups of a join": f"SELECT t DIV 8 AS w, count(*) AS n FROM ({INNER}) AS q GROUP BY t DIV 8",
    "groups by two windows": f"SELECT (t DIV 4) DIV 4 AS w, t DIV 4 AS v, count(*) AS n FROM ({INNER}) AS q"
    " GROUP BY (t DIV 4) DIV 4, t DIV 4",
    "groups of an outer join": f"SELECT t, count(*) AS n, count(bt) AS m FROM ({LEFT}) AS q GROUP BY t",
    "a full join under a join": "SELECT b.t AS bt, q.t, q.ct FROM b JOIN (SELECT a.k, a.t, c.t AS ct FROM a FULL JOIN c"
    f" ON {NEAR.format('a', 'c')}) AS q ON {NEAR.format('q', 'b')}",
    "an outer join under a join": f"SELECT q.t, q.bt, c.t AS ct FROM ({LEFT}) AS q JOIN c"
    " ON q.k = c.k AND c.t BETWEEN q.t - 2 AND q.t + 4",
    "an outer join on pairs under a join": f"SELECT q.t, q.bt, c.t AS ct FROM ({LEFT} AND a.x <= b.x) AS q JOIN c"
    " ON q.k = c.k AND c.t BETWEEN q.t - 2 AND q.t + 4",
    "groups under an outer join": "SELECT q.t, q.n, c.t AS ct FROM (SELECT k, t, count(*) AS n FROM"
    f" ({INNER}) AS p GROUP BY k, t) AS q LEFT JOIN c ON {NEAR.format('q', 'c')}",
    "a union of joins": f"SELECT t, count(*) AS n FROM (SELECT a.t FROM a JOIN b ON {NEAR.format('a', 'b')} UNION ALL"
    f" SELECT c.t FROM c JOIN b ON {NEAR.format('c', 'b')}) AS q GROUP BY t",
    "a self-join": "SELECT x.t, count(*) AS n FROM a AS x JOIN a AS y"
    f" ON {NEAR.format('x', 'y')} AND x.x < y.x GROUP BY x.t",
    "rows without a match": "SELECT t, count(*) AS n FROM a WHERE NOT EXISTS (SELECT 1 FROM b"
    f" WHERE {NEAR.format('a', 'b')}) GROUP BY t",
    "a chain": "SELECT a.t, b.t AS bt, c.t AS ct, a.u FROM a JOIN b"
    f" ON {NEAR.format('a', 'b')} JOIN c ON {NEAR.format('b', 'c')}",
    "an outer join by two times": "SELECT a.t, a.u, b.t AS bt FROM a LEFT JOIN b"
    f" ON {NEAR.format('a', 'b')} AND b.u BETWEEN a.u - 9 AND a.u + 9",
    "a full join": "SELECT a.t, a.u, b.t AS bt FROM a FULL JOIN b"
    f" ON {NEAR.format('a', 'b')} AND b.u BETWEEN a.u - 9 AND a.u + 9",
    "distinct pairs": f"SELECT DISTINCT q.t, q.bt FROM ({LEFT}) AS q",
}
KEEPS_ALL = (
    "SELECT a.k, a.t, b.t AS bt, c.t AS ct FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k EMIT WHEN WATERMARK PAST a.t"
)
Row = dict[str, Any]


def static(formula: Formula) -> Formula:
    """What conditions give alone, whatever is kept."""
    match formula:
        case Watermark():
            return formula
        case Lifted(of, steps):
            return lift(static(of), steps)
        case RetainedMinimum(own, met):
            return least([static(own), static(met)]) if met is not None else Watermark("", "")
        case _:
            return replace(formula, of=tuple(static(each) for each in formula.of))


@dataclass
class Played:
    """A flow of three sources with one query, as a view that shows all changes and as one with EMIT FINAL."""

    query: str
    numbers: random.Random
    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in "abc"})
    watermarks: dict[str, int] = field(default_factory=dict)
    explicit: dict[str, int] = field(default_factory=dict)
    output: dict[tuple[str, str], int] = field(default_factory=dict)
    out: dict[str, Counter[tuple[Any, ...]]] = field(default_factory=lambda: {"v": Counter(), "f": Counter()})
    time: int = 10

    def __post_init__(self) -> None:
        pick = self.numbers
        self.driver = Driver(parallelism=pick.choice([1, 3]))
        kinds = ["STREAM"] if self.query == QUERIES["a full join"] else ["STREAM", "STREAM", "CHANGELOG"]
        self.kinds = {name: pick.choice(kinds) for name in "abc"}
        self.other = pick.choice([query for name, query in QUERIES.items() if name != "a full join"]) + " EMIT FINAL"
        for name, kind in self.kinds.items():
            self.driver.sql(f"CREATE {kind} {name} (k INT, t BIGINT, u BIGINT, x INT, WATERMARK t, WATERMARK u)")
        for view in pick.sample([f"v AS {self.query}", f"f AS {self.query} EMIT FINAL"], 2):
            self.driver.sql(f"CREATE VIEW {view}")

    def epoch(self) -> None:
        """Few rows around a time that goes on, with gaps, and watermarks that follow it more or less."""
        pick, moved = self.numbers, {}
        self.time += pick.choice([0, 1, 3, 3, 20])
        for name in "abc":
            for _ in range(pick.choice([0, 0, 1, 1, 3])):
                time = max(0, self.time + pick.randrange(-9, 4))
                row = {
                    "k": pick.choice([None, 1, 1, 2]),
                    "t": time,
                    "u": time + 3 + pick.randrange(9),
                    "x": pick.randrange(3),
                }
                self.driver.insert(name, row)
                if time >= self.watermarks.get(name, 0):
                    self.rows[name].append(row)
            gone = [row for row in self.rows[name] if row["t"] >= self.watermarks.get(name, 0)]
            if self.kinds[name] == "CHANGELOG" and gone and pick.random() < 0.5:
                row = pick.choice(gone)
                self.rows[name].remove(row)
                self.driver.delete(name, row)
            if pick.random() < 0.6:
                moved[name] = max(self.watermarks.get(name, 0) + 1, self.time - pick.randrange(9))
                self.driver.watermark(name, moved[name], "t")
                if pick.random() < 0.7:
                    self.explicit[name] = max(self.explicit.get(name, 0) + 1, moved[name] + 3 - pick.randrange(6))
                    self.driver.watermark(name, self.explicit[name], "u")
        self.step()
        self.watermarks |= moved
        if pick.random() < 0.15:
            self.define()
        if pick.random() < 0.2:
            self.driver.restart(parallelism=pick.choice([1, 2, 3]))
            assert self.claimed() == self.output

    def define(self) -> None:
        """A view comes that keeps everything, or one that shares what is kept; or it goes. Output watermarks stay."""
        name, query = self.numbers.choice([("keeps_all", KEEPS_ALL), ("other", self.other)])
        if self.driver.catalog.find(name) is None:
            self.driver.sql(f"CREATE VIEW {name} AS {query}")
        else:
            self.driver.sql(f"DROP VIEW {name}")
            self.output = {pair: time for pair, time in self.output.items() if pair[0] != name}
        self.check_watermarks()

    def step(self) -> None:
        """Run an epoch: no change is below an output watermark."""
        changes = self.driver.step()
        for view in self.driver.catalog.views:
            for row, diff in changes[view.name]:
                assert diff > 0 or view.name in ("v", "keeps_all"), "a final row is never retracted"
                late = [
                    n for n, time in row.items() if time is not None and time < self.output.get((view.name, n), LEAST)
                ]
                assert not late, (view.name, row, diff, self.output)
                if view.name in self.out:
                    self.out[view.name][tuple(row.values())] += diff
        self.check_watermarks()

    def check_watermarks(self) -> None:
        """Output watermarks never go back, and are not below what the bounds give."""
        claimed = self.claimed()
        assert all(claimed[pair] >= time for pair, time in self.output.items()), (claimed, self.output)
        self.output = claimed
        plan, times = self.driver._engine.version.plan, self.driver._engine.version.watermarks.times
        limits = [gate.limit for gate in plan.program.gates if gate.limit is not None]
        for formula in (*limits, *(formula for shown in plan.outputs.values() for formula in shown.values())):
            assert value_of(formula, times, LEAST) >= value_of(static(formula), times, LEAST)

    def claimed(self) -> dict[tuple[str, str], int]:
        """The output watermarks of all views."""
        views = [view.name for view in self.driver.catalog.views]
        return {(view, name): time for view in views for name, time in self.driver.watermarks(view).items()}

    def wanted(self) -> Counter[tuple[Any, ...]]:
        """DuckDB's answer over the rows that were not late."""
        oracle = duckdb.connect()
        for name, rows in self.rows.items():
            oracle.execute(f"CREATE TABLE {name} (k INT, t BIGINT, u BIGINT, x INT)")
            for row in rows:
                oracle.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", [*row.values()])
        return Counter(oracle.execute(self.query.replace(" DIV ", " // ")).fetchall())


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@budget(1)
@given(seed=st.integers(0, 2**32))
def test_no_change_is_below_the_output_watermark(query: str, seed: int) -> None:
    played = Played(query, random.Random(seed))
    for _ in range(EPOCHS):
        played.epoch()
    for name in "abc":
        for column in "tu":
            played.driver.watermark(name, EVER, column)
    played.step()
    wanted = played.wanted()
    for out in played.out.values():
        assert +out == wanted and min(out.values(), default=0) >= 0

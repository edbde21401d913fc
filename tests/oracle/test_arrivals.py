"""Joins at arrival, LATEST and CHANGES over random inputs: what each epoch adds is what DuckDB makes of its rows.

The rows of an epoch meet the other side as it is after the epoch; what was joined stays as it is, whatever comes later,
through restarts and changes of parallelism.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.testing import Driver
from tests.oracle.budget import budget

Row = dict[str, Any]
Rows = Counter[tuple[Any, ...]]
KINDS = ["", "LEFT", "LEFT SEMI", "LEFT ANTI", "FULL"]
RIGHTS = {
    "table": "SELECT k, t, x FROM r",
    "stream": "SELECT k, t, x FROM r",
    "filtered": "SELECT k, t, x + 1 AS x FROM r WHERE x > 0",
    "groups": "SELECT k, max(t) AS t, count(*) AS x FROM r GROUP BY k",
    "joined": "SELECT r.k, r.t, r.x + o.x AS x FROM r JOIN r AS o ON r.k = o.k",
}
NOW = "FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("t", pa.int64()), ("x", pa.int32())])
EPOCHS = 6


class Played:
    """A flow of a stream and another side; DuckDB has the rows of both, and `out` all rows that should be emitted."""

    def __init__(self, kind: str, numbers: random.Random) -> None:
        self.numbers, self.kind = numbers, kind
        shapes = ["stream"] if kind == "FULL" else list(RIGHTS)
        self.shape = numbers.choice(shapes)
        self.is_table = self.shape == "table" or (self.shape != "stream" and numbers.random() < 0.5)
        self.on = "l.k = r.k" if numbers.random() < 0.85 else "TRUE"
        for condition in ("r.t BETWEEN l.t - 3 AND l.t + 2", "l.x > 0", "r.x > 0", "l.x <= r.x"):
            self.on += f" AND {condition}" if numbers.random() < 0.3 else ""
        sides = "l" if "SEMI" in kind or "ANTI" in kind else "lr"
        self.columns = [f"{side}.{name} AS {side}{name}" for side in sides for name in "ktx"]
        self.left = numbers.choice(["SELECT k, t, x FROM l", "SELECT k, t, x + 1 AS x FROM l WHERE x < 2"])
        self.driver = Driver(parallelism=numbers.choice([1, 2, 3]))
        self.driver.sql("CREATE STREAM l (id BIGINT, k INT, t BIGINT, x INT)")
        what = "TABLE" if self.is_table else "STREAM"
        self.driver.sql(f"CREATE {what} r (id BIGINT, k INT, t BIGINT, x INT{', PRIMARY KEY (id)' * self.is_table})")
        listed = ", ".join(self.columns)
        self.driver.sql(
            f"CREATE VIEW v AS WITH other AS ({RIGHTS[self.shape]}) SELECT {listed} FROM ({self.left}) l "
            f"{kind} JOIN other {NOW} AS r ON {self.on}"
        )
        self.driver.sql("CREATE VIEW n AS SELECT lk, count(*) AS n FROM v GROUP BY lk")
        self.rows: dict[str, list[Row]] = {"l": [], "r": []}
        self.out: Rows = Counter()
        self.id = 0

    def epoch(self) -> None:
        """Some rows on both sides, and what should come of them."""
        before = {side: list(rows) for side, rows in self.rows.items()}
        fresh: dict[str, list[Row]] = {"l": [], "r": []}
        for side in "lr":
            for _ in range(self.numbers.randrange(4)):
                fresh[side] += self._put(side)
        expected = self._expected(before, fresh)
        changes = self.driver.step()
        found: Rows = Counter()
        for row, diff in changes["v"]:
            assert diff > 0, "a joined row is never retracted"
            found[tuple(row.values())] += diff
        assert found == expected
        self.out += expected
        counts: Counter[Any] = Counter()
        for joined, n in self.out.items():
            counts[joined[0]] += n
        assert {row["lk"]: row["n"] for row in self.driver.table("n")} == dict(counts)
        if self.numbers.random() < 0.25:
            self.driver.restart(parallelism=self.numbers.choice([1, 2, 3]))

    def _put(self, side: str) -> list[Row]:
        pick, self.id = self.numbers, self.id + 1
        row = {"id": self.id, "k": pick.choice([None, 1, 2, 3]), "t": pick.randrange(10), "x": pick.randrange(-1, 3)}
        if side == "r" and self.is_table and self.rows["r"] and pick.random() < 0.6:
            old = pick.choice(self.rows["r"])
            self.rows["r"] = [each for each in self.rows["r"] if each["id"] != old["id"]]
            if pick.random() < 0.4:
                self.driver.delete("r", {"id": old["id"]})
                return []
            row["id"] = old["id"]
        self.driver.insert(side, row)
        self.rows[side].append(row)
        return [row]

    def _expected(self, before: dict[str, list[Row]], fresh: dict[str, list[Row]]) -> Rows:
        if self.kind != "FULL":
            return self._joined(self.kind, fresh["l"], self.rows["r"])
        pairs = self._joined("", self.rows["l"], self.rows["r"])
        pairs.subtract(self._joined("", before["l"], before["r"]))
        lonely = self._joined("FULL", fresh["l"], self.rows["r"]), self._joined("FULL", self.rows["l"], fresh["r"])
        width = len(self.columns) // 2
        here = Counter({row: n for row, n in lonely[0].items() if row[width:] == (None,) * width})
        there = Counter({row: n for row, n in lonely[1].items() if row[:width] == (None,) * width})
        return Counter({row: n for row, n in (pairs + here + there).items() if n})

    def _joined(self, kind: str, left: list[Row], right: list[Row]) -> Rows:
        with duckdb.connect() as model:
            for name, rows in (("l", left), ("r", right)):
                model.register(name, pa.Table.from_pylist(rows, schema=SCHEMA))
            listed = ", ".join(self.columns)
            words = kind.removeprefix("LEFT ") if kind in ("LEFT SEMI", "LEFT ANTI") else kind
            query = f"SELECT {listed} FROM ({self.left}) l {words} JOIN ({RIGHTS[self.shape]}) r ON {self.on}"
            return Counter(model.execute(query).fetchall())


@pytest.mark.parametrize("kind", KINDS)
@budget(1, deep=3)
@given(seed=st.integers(0, 10**9))
def test_rows_meet_the_other_side_once(kind: str, seed: int) -> None:
    played = Played(kind, random.Random(f"{seed} {kind}"))
    for _ in range(EPOCHS):
        played.epoch()


@budget(3, deep=6)
@given(seed=st.integers(0, 10**9))
def test_the_last_row_of_each_key(seed: int) -> None:
    pick = random.Random(seed)
    driver = Driver(parallelism=pick.choice([1, 2, 3]))
    driver.sql("CREATE STREAM s (k INT, j STRING, t BIGINT, v BIGINT)")
    driver.sql("CREATE VIEW came AS SELECT * FROM LATEST(TABLE s, DESCRIPTOR(k, j))")
    driver.sql("CREATE VIEW timed AS SELECT * FROM LATEST(TABLE s, DESCRIPTOR(k), DESCRIPTOR(t))")
    driver.sql("CREATE VIEW sums AS SELECT j, sum(v) AS v FROM LATEST(TABLE s, DESCRIPTOR(k, j)) AS l GROUP BY j")
    came: dict[Any, Row] = {}
    timed: dict[Any, Row] = {}
    for number in range(EPOCHS):
        for _ in range(pick.randrange(6)):
            row = {"k": pick.choice([None, 1, 2]), "j": pick.choice(["a", None]), "t": pick.choice([None, *range(5)])}
            row["v"] = number * 100 + pick.randrange(100)
            driver.insert("s", row)
            came[row["k"], row["j"]] = row
            known = timed.get(row["k"])
            if known is None or (-1 if row["t"] is None else row["t"]) >= (-1 if known["t"] is None else known["t"]):
                timed[row["k"]] = row
        driver.step()
        assert _sorted(driver.table("came")) == _sorted(came.values())
        assert _sorted(driver.table("timed")) == _sorted(timed.values())
        totals: Counter[Any] = Counter()
        for row in came.values():
            totals[row["j"]] += row["v"]
        assert {row["j"]: row["v"] for row in driver.table("sums")} == dict(totals)
        if pick.random() < 0.3:
            driver.restart(parallelism=pick.choice([1, 2, 3]))


@budget(1, deep=3)
@given(seed=st.integers(0, 10**9))
def test_changes_add_up_to_the_relation(seed: int) -> None:
    """The rows that came minus those that went are the relation, epoch by epoch, and each row says its epoch."""
    pick = random.Random(seed)
    driver = Driver(parallelism=pick.choice([1, 2, 3]))
    driver.sql("CREATE TABLE t (id INT, k INT, v INT, PRIMARY KEY (id))")
    driver.sql("CREATE VIEW g AS SELECT k, sum(v) AS v, count(*) AS n FROM t GROUP BY k")
    driver.sql("CREATE VIEW c AS SELECT k, v, n, _undo AS gone, _epoch AS at FROM CHANGES(TABLE g)")
    total: Rows = Counter()
    for number in range(EPOCHS):
        for _ in range(pick.randrange(4)):
            row = {"id": pick.randrange(5), "k": pick.choice([None, 1, 2]), "v": pick.randrange(3)}
            driver.insert("t", row)
        changes = driver.step()
        for row, diff in changes["c"]:
            assert diff == 1 and row["at"] == number
            total[row["k"], row["v"], row["n"]] += -1 if row["gone"] else 1
        assert len(changes["c"]) == len(changes["g"])
        assert (
            +total == Counter(tuple(row.values()) for row in driver.table("g")) and min(total.values(), default=0) >= 0
        )
        if pick.random() < 0.3:
            driver.restart(parallelism=pick.choice([1, 2, 3]))


def _sorted(rows: Any) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)

"""Expressions that fail, over random changes: an epoch fails if and only if the batch query on its inputs does.

An epoch that fails has not happened: nothing is committed, and the flow goes on with the next one. None of this depends
on how changes are split into epochs, on what is merged, on parallelism, on restarts, or on when the view was made.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from rejoinder.errors import EvaluationError
from rejoinder.testing import Driver
from tests.deep import TIMES, seeds
from tests.oracle.failing_queries import Query, Term, Writer, terms

Row = dict[str, Any]
Rows = Counter[tuple[Any, ...]]
COLUMNS = "id INT, k INT, b INT, s STRING"
SCHEMA = pa.schema([("id", pa.int32()), ("k", pa.int32()), ("b", pa.int32()), ("s", pa.string())])
SEEDS = 4
EPOCHS = 10
FAILED = "failed on a row|overflows"


class Flow:
    """A flow, and the rows that its sources should have."""

    def __init__(self, seed: int) -> None:
        self.numbers = random.Random(seed)
        self.tables = {name for name in "xyz" if self.numbers.random() < 0.4}
        self.driver = Driver(parallelism=self.numbers.choice([1, 2, 7]))
        for name in "xyz":
            what = (
                f"TABLE {name} ({COLUMNS}, PRIMARY KEY (id))"
                if name in self.tables
                else f"CHANGELOG {name} ({COLUMNS})"
            )
            self.driver.sql(f"CREATE {what}")
        self.rows: dict[str, list[Row]] = {name: [] for name in "xyz"}
        self.query: Query = Writer(self.numbers).write()

    def change(self) -> dict[str, list[Row]]:
        """Make a few changes of the next epoch; give the rows that the sources should have after it."""
        after = {name: list(rows) for name, rows in self.rows.items()}
        for _ in range(self.numbers.randrange(1, 13)):
            name = self.numbers.choice("xyz")
            kind = self.numbers.random()
            if kind < 0.2 and after[name]:
                self._delete(name, self.numbers.choice(after[name]), after)
            elif kind < 0.4 and after[name]:  # a correction
                old = self.numbers.choice(after[name])
                if name not in self.tables:
                    self._delete(name, old, after)
                self._insert(name, {**self._row(), "id": old["id"], "k": old["k"]}, after)
            elif kind < 0.5:  # comes and goes
                row = self._row()
                if not any(each["id"] == row["id"] for each in after[name]):
                    self._insert(name, row, after)
                    self._delete(name, row, after)
            else:
                self._insert(name, self._row(), after)
        return after

    def _row(self) -> Row:
        choice = self.numbers.choice
        return {
            "id": self.numbers.randrange(12),
            "k": choice([0, 1, 1, 2, None]),
            "b": choice([0, 1, 1, 1, 2, 2, 2, 3, 5, None]),
            "s": choice(["1", "2", "3", "n/a", None]),
        }

    def _insert(self, name: str, row: Row, after: dict[str, list[Row]]) -> None:
        if name in self.tables:
            after[name] = [each for each in after[name] if each["id"] != row["id"]]
        after[name].append(row)
        self.driver.insert(name, row)

    def _delete(self, name: str, row: Row, after: dict[str, list[Row]]) -> None:
        after[name].remove(row)
        self.driver.delete(name, row)

    def batch(self, rows: dict[str, list[Row]]) -> Rows | None:
        """What DuckDB answers; None if the query fails."""
        with duckdb.connect() as connection:
            for name in "xyz":
                connection.register(name, pa.Table.from_pylist(rows[name], SCHEMA))
            if any(connection.execute(failing).fetchall() for failing in self.query.failing):
                return None
            return Counter(connection.execute(self.query.batch).fetchall())

    def view(self, name: str) -> Rows:
        """The rows of a view."""
        return Counter(tuple(row.values()) for row in self.driver.table(name))

    def define(self, view: str) -> bool:
        """Make a view; say whether it could be made, as it has to if the batch query answers."""
        expected = self.batch(self.rows)
        if expected is None:
            with pytest.raises(EvaluationError, match=FAILED):
                self.driver.sql(f"CREATE VIEW {view} AS {self.query.text}")
            return False
        self.driver.sql(f"CREATE VIEW {view} AS {self.query.text}")
        assert self.view(view) == expected
        return True

    def step(self, views: list[str]) -> bool:
        """One epoch; say whether it was committed."""
        after = self.change()
        expected = self.batch(after) if views else Counter()
        epoch = self.driver.epoch
        if expected is None:
            with pytest.raises(EvaluationError, match=FAILED):
                self.driver.step()
            assert self.driver.epoch == epoch
            expected = self.batch(self.rows)
        else:
            self.driver.step()
            self.rows = after
        for view in views:
            assert self.view(view) == expected
        return self.driver.epoch > epoch


@pytest.mark.parametrize("seed", seeds(SEEDS, times=3 * TIMES))
def test_an_epoch_fails_if_and_only_if_the_batch_query_does(seed: int) -> None:
    flow = Flow(seed)
    views = ["v"] if flow.numbers.random() < 0.8 and flow.define("v") else []
    for epoch in range(EPOCHS):
        flow.step(views)
        if flow.numbers.random() < 0.15:
            flow.driver.restart(parallelism=flow.numbers.choice([1, 3, 7]))
        if epoch == EPOCHS // 2 and flow.define("w"):
            views.append("w")


@pytest.mark.parametrize("term", terms("x"), ids=lambda term: term.text)
def test_a_term_fails_where_the_model_says_so(term: Term) -> None:
    """Each expression by itself, on each value that rows have."""
    driver = Driver()
    driver.sql(f"CREATE CHANGELOG x ({COLUMNS}); CREATE VIEW v AS SELECT id, {term.text} AS q FROM x")
    values = [(b, "1") for b in (0, 1, 2, 3, 5, None)] + [(1, s) for s in ("1", "2", "3", "n/a", None)]
    found: list[tuple[int | None, bool]] = []
    for at, (b, s) in enumerate(values):
        driver.insert("x", {"id": at, "k": 1, "b": b, "s": s})
        try:
            ((row, _),) = driver.step()["v"]
            found.append((row["q"], False))
        except EvaluationError:
            found.append((None, True))
    with duckdb.connect() as connection:
        rows = [{"id": at, "k": 1, "b": b, "s": s} for at, (b, s) in enumerate(values)]
        connection.register("x", pa.Table.from_pylist(rows, SCHEMA))
        asked = f"SELECT {term.value}, {term.is_failing} FROM x ORDER BY id"
        wanted = connection.execute(asked).fetchall()
    assert found == [(None if fails else value, fails) for value, fails in wanted]


def test_both_outcomes_are_met() -> None:
    """The random flows fail often enough, and not too often."""
    outcomes = Counter[bool]()
    for seed in range(8):
        flow = Flow(seed)
        for _ in range(EPOCHS):
            after = flow.change()
            is_failing = flow.batch(after) is None
            flow.rows = flow.rows if is_failing else after
            outcomes[is_failing] += 1
    assert min(outcomes[True], outcomes[False]) > 5

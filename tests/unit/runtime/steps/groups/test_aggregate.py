"""Aggregate: −old + new row of every touched group; as if each group were computed from all of its rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.errors import EvaluationError
from rejoinder.ir.expressions.expression import column
from rejoinder.ir.identities import DerivedRows, OperationInput
from rejoinder.kernels.arrow.columns import DIFF, HASH
from rejoinder.plan.blocks.accumulators import Accumulator
from rejoinder.plan.operations.grouping import Grouping
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.steps import Aggregate, Arrange
from rejoinder.runtime.steps.arrange import arrange, insert_runs
from rejoinder.runtime.steps.groups import aggregate as operator
from rejoinder.runtime.steps.groups.aggregate import aggregate
from rejoinder.runtime.task import Task, partition_hashes
from tests.unit.runtime.tasks import meaning, task

INPUT = pa.schema([("c0", pa.string()), ("c1", pa.int64())])
GROUPING = Grouping(
    (pa.string(),),
    (
        Accumulator("a0", "count", "c1", pa.int64(), "count(x)"),
        Accumulator("a1", "sum", "c1", pa.int64(), "sum(x)"),
        Accumulator("a2", "min", "c1", pa.int64(), "min(x)"),
        Accumulator("a3", "max", "c1", pa.int64(), "max(x)"),
    ),
)
KEY = Key((column("c0", pa.string()),), frozenset({0}))
GROUPED = DerivedRows("aggregate", "0")
GROUPS, VALUES = Arrangement(GROUPED, KEY, GROUPING.schema), Arrangement(OperationInput(GROUPED), KEY, INPUT)
STEP = Aggregate("in", "out", GROUPS, GROUPING.key_names, GROUPING.accumulators, VALUES, ("v",))
Row = tuple[str | None, int | None]
ROWS = st.tuples(st.sampled_from([None, "", "a"]), st.sampled_from([None, -5, 0, 7, 7, 9]))


def delta(rows: list[tuple[str | None, int | None, int]]) -> pa.Table:
    table = pa.table({"c0": [r[0] for r in rows], "c1": [r[1] for r in rows]}, schema=INPUT)
    table = table.append_column(DIFF, pa.array([r[2] for r in rows], pa.int64()))
    return table.append_column(HASH, pa.array(partition_hashes(table, KEY)[0]))


def run(rows: list[tuple[str | None, int | None, int]], last: Task | None, step: Aggregate = STEP) -> Task:
    """One epoch: the operator, then both arrangements."""
    now = task(last.report.spines if last else None, epoch=last.epoch + 1 if last else 0, store_of=last)
    now.streams["in"] = delta(rows)
    aggregate(now, step)
    arrange(now, Arrange("in", VALUES, check=False))
    arrange(now, Arrange("out", GROUPS, check=False))
    insert_runs(now)
    now.report.spines = {**(last.report.spines if last else {}), **now.report.spines}
    return now


def expected(rows: Counter[Row]) -> Counter[tuple[Any, ...]]:
    result: Counter[tuple[Any, ...]] = Counter()
    for key in {key for key, _ in rows}:
        listed = [value for (k, value), count in rows.items() if k == key for _ in range(count)]
        values = [value for value in listed if value is not None]
        if listed:
            low, high = (min(values), max(values)) if values else (None, None)
            result[key, len(listed), len(values), sum(values), low, high] += 1
    return result


def check(epochs: list[tuple[list[Row], int]]) -> None:
    """Each epoch adds rows and takes out some of those that are there."""
    held: Counter[Row] = Counter()
    shown: Counter[tuple[Any, ...]] = Counter()
    last = None
    for added, taken in epochs:
        gone = sorted(held.elements(), key=str)[:taken]
        last = run([(*row, 1) for row in added] + [(*row, -1) for row in gone], last)
        held.update(added)
        held.subtract(gone)
        change = meaning(last.streams.get("out"))
        shown.update(change)
        assert Counter({row: n for row, n in shown.items() if n}) == expected(held)


EPOCHS = st.lists(st.tuples(st.lists(ROWS, max_size=8), st.integers(0, 6)), min_size=1, max_size=6)


@given(epochs=EPOCHS)
def test_groups_are_what_their_rows_come_to(epochs: list[tuple[list[Row], int]]) -> None:
    check(epochs)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(epochs=EPOCHS)
def test_collisions_join_no_groups(weak_hash: None, epochs: list[tuple[list[Row], int]]) -> None:
    check(epochs)


def test_nothing_is_said_of_a_group_that_stays_as_it_is() -> None:
    first = run([("a", 5, 1), ("b", 1, 1)], None)
    second = run([("a", 3, 1), ("a", 3, -1), ("b", 2, 1)], first)
    assert {row[0] for row in meaning(second.streams["out"])} == {"b"}


def test_a_group_without_rows_has_no_row() -> None:
    first = run([("a", 5, 2)], None)
    second = run([("a", 5, -2)], first)
    assert meaning(second.streams["out"]) == {("a", 2, 2, 10, 5, 5): -1}


def test_values_are_read_again_only_if_the_extreme_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    last = run([("a", value, 1) for value in range(10)], None)
    asked: list[int] = []
    again = operator._recomputed

    def counted(*arguments: Any) -> Any:
        asked.append(len(arguments[3]))
        return again(*arguments)

    monkeypatch.setattr(operator, "_recomputed", counted)
    last = run([("a", 5, -1), ("a", 20, 1), ("a", -20, 1)], last)
    last = run([("a", 20, -1), ("a", 30, 1)], last)
    assert not asked, "a new largest value takes the place of the old one"
    last = run([("a", 30, -1), ("b", 1, 1)], last)
    assert asked == [1]
    assert meaning(last.streams["out"])["a", 10, 10, 20, -20, 9] == 1


def test_the_whole_content_counts_from_nothing() -> None:
    first = run([("a", 5, 1)], None)
    whole = Aggregate("in", "out", GROUPS, STEP.keys, STEP.accumulators, VALUES, ("v",), whole=True)
    second = run([("a", 5, 1), ("a", 6, 1), ("b", 1, 1), ("b", 1, -1)], first, whole)
    assert meaning(second.streams["out"]) == {("a", 2, 2, 11, 5, 6): 1}


def test_a_sum_that_does_not_fit_names_view_and_group() -> None:
    first = run([("a", 2**62, 1), ("b", 1, 1)], None)
    with pytest.raises(EvaluationError, match=r"`sum\(x\)` overflows in view `v`\nDetail: a group: ") as raised:
        run([("a", 2**62, 1)], first)
    assert raised.value.values == "group ('a',)"
    assert meaning(run([("a", 2**62, 1), ("a", 2**62, -1)], first).streams.get("out")) == {}


def test_keys_that_are_equal_are_one_group() -> None:
    grouping = Grouping((pa.float64(),), ())
    key = Key((column("c0", pa.float64()),), frozenset({0}))
    now = task()
    now.streams["in"] = pa.table({"c0": pa.array([0.0, -0.0, np.nan, -np.nan, None])})
    aggregate(now, Aggregate("in", "out", Arrangement(GROUPED, key, grouping.schema), ("c0",), (), None, ("v",)))
    rows = sorted((str(row["c0"]), row["n"]) for row in now.streams["out"].to_pylist())
    assert rows == [("0.0", 2), ("None", 1), ("nan", 2)]

"""INTERSECT and EXCEPT: how often a row is in the result follows from its copies on both sides, in every epoch."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.ir.expressions.expression import column
from rejoinder.ir.identities import DerivedRows, OperationInput
from rejoinder.kernels.arrow.columns import DIFF
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.steps import Arrange, IntersectExcept, Kept
from rejoinder.runtime.steps.arrange import arrange, insert_runs
from rejoinder.runtime.steps.intersect_except import intersect_except
from rejoinder.runtime.task import Task, needles
from tests.unit.runtime.tasks import meaning, task

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("left", pa.bool_())])
KEY = Key((column("k", pa.int64()), column("s", pa.string())), frozenset({0, 1}))
COPIES = Arrangement(OperationInput(DerivedRows("intersect", "0")), KEY, SCHEMA)
Row = tuple[int | None, str | None, bool, int]
ROWS = st.tuples(
    st.sampled_from([None, 0]), st.sampled_from([None, "", "a"]), st.booleans(), st.sampled_from([-1, 1, 1, 2])
)
OPERATIONS: list[tuple[Kept, bool]] = [("intersect", False), ("intersect", True), ("except", False), ("except", True)]


def delta(rows: list[Row]) -> pa.Table:
    values = {name: [row[at] for row in rows] for at, name in enumerate(SCHEMA.names)}
    table = pa.table(values, schema=SCHEMA).append_column(DIFF, pa.array([row[3] for row in rows], pa.int64()))
    return needles(table, KEY, hashed=False)


def expected(keeps: Kept, *, all: bool, left: int, right: int) -> int:  # noqa: A002
    if keeps == "intersect":
        return min(left, right) if all else int(left > 0 and right > 0)
    return max(left - right, 0) if all else int(left > 0 and right == 0)


def run(rows: list[Row], step: IntersectExcept, last: Task | None) -> Task:
    now = task(last.report.spines if last else None, epoch=last.epoch + 1 if last else 0, store_of=last)
    if rows:
        now.streams["in"] = delta(rows)
    intersect_except(now, step)
    arrange(now, Arrange("in", COPIES, check=False))
    insert_runs(now)
    now.report.spines = {**(last.report.spines if last else {}), **now.report.spines}
    return now


@pytest.mark.parametrize(("keeps", "all_"), OPERATIONS)
@given(epochs=st.lists(st.lists(ROWS, max_size=8), max_size=6))
def test_the_result_follows_the_copies_of_both_sides(keeps: Kept, all_: bool, epochs: list[list[Row]]) -> None:
    copies: Counter[Any] = Counter()
    result: Counter[Any] = Counter()
    last = None
    for rows in epochs:
        valid = []
        for k, s, is_left, diff in rows:
            if copies[k, s, is_left] + diff >= 0:
                copies[k, s, is_left] += diff
                valid.append((k, s, is_left, diff))
        last = run(valid, IntersectExcept("in", "out", COPIES, "left", keeps, all_), last)
        for row, change in meaning(last.streams.get("out")).items():
            result[row] += change
        for k, s in {(k, s) for k, s, _ in copies}:
            count = expected(keeps, all=all_, left=copies[k, s, True], right=copies[k, s, False])
            assert result[k, s] == count


def test_the_whole_content_counts_from_nothing() -> None:
    step = IntersectExcept("in", "out", COPIES, "left", "except", all=True)
    rows: list[Row] = [(1, "a", True, 3), (1, "a", False, 1), (2, None, True, 1), (2, None, False, 1)]
    first = run(rows, step, None)
    whole = IntersectExcept("in", "out", COPIES, "left", "except", all=True, whole=True)
    again = task(first.report.spines, store_of=first)
    again.streams["in"] = delta(rows)
    intersect_except(again, whole)
    assert meaning(again.streams["out"]) == {(1, "a"): 2}
    assert set(again.streams["out"].column_names) == {"k", "s", "__hash", DIFF}

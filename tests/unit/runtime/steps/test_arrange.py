"""Arrange: a new run for the change, seen by later lookups of the epoch; no row leaves that is not there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.errors import MissingRow
from rejoinder.ir.identities import SourceRows
from rejoinder.kernels.arrow.columns import hashes
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.steps import Arrange
from rejoinder.runtime.steps.arrange import arrange, insert_runs
from rejoinder.runtime.task import Task
from rejoinder.store.runs.run import read_run
from rejoinder.store.runs.spine import Spine
from tests.unit.runtime.tasks import SCHEMA, arrangement, delta, key, meaning, task

STEP = Arrange("in", arrangement("k"), check=True)
ID = STEP.arrangement.id
Rows = list[tuple[int | None, str | None, int]]


def epoch(last: Task | None, rows: Rows, *, hashed: bool = True) -> Task:
    """Run one epoch on top of another."""
    now = task(last.report.spines if last else None, epoch=(last.epoch + 1 if last else 0), store_of=last)
    now.streams["in"] = delta(rows, STEP.arrangement.key if hashed else None)
    arrange(now, STEP)
    return now


def settled(last: Task | None, rows: Rows) -> Task:
    now = epoch(last, rows)
    insert_runs(now)
    return now


def test_lookups_of_the_epoch_see_the_change_only_if_they_may() -> None:
    first = settled(None, [(1, "a", 1)])
    now = epoch(first, [(2, "b", 1)])
    assert [len(list(now.refs(ID, after=after))) for after in (False, True)] == [1, 2]
    insert_runs(now)
    assert [len(list(now.refs(ID, after=after))) for after in (False, True)] == [1, 2]
    assert now.arranged == {}


@pytest.mark.parametrize("hashed", [True, False])
def test_the_change_is_netted_and_sorted(hashed: bool) -> None:
    now = epoch(None, [(1, "a", 2), (3, "c", 1), (1, "a", -1), (2, "b", 1), (3, "c", -1)], hashed=hashed)
    (ref,) = now.refs(ID, after=True)
    assert meaning(read_run(now.store, ref)) == {(1, "a"): 1, (2, "b"): 1}


def test_nothing_is_written_for_nothing() -> None:
    assert epoch(None, []).arranged == {}
    assert epoch(None, [(1, "a", 1), (1, "a", -1)]).arranged == {}


def test_rows_leave_once() -> None:
    first = settled(None, [(1, "a", 2), (None, "n", 1)])
    second = settled(first, [(1, "a", -2), (None, "n", -1)])
    for gone in ((1, "a", -1), (None, "n", -1)):
        with pytest.raises(MissingRow):
            epoch(second, [gone])
    settled(second, [(1, "a", -1), (1, "a", 1)])


@pytest.mark.parametrize("row", [(1, "b", -1), (2, "a", -1), (1, "a", -3), (1, None, -1), (None, "a", -1)])
def test_a_row_that_is_not_there_cannot_leave(row: tuple[int | None, str | None, int]) -> None:
    first = settled(None, [(1, "a", 2)])
    with pytest.raises(MissingRow) as raised:
        epoch(first, [(5, "x", 1), row])
    assert raised.value.fact == "a deleted row does not exist in `r`"
    assert str({"k": row[0], "s": row[1]}) in (raised.value.values or "") and raised.value.hint


BY_TIME = Arrange("in", Arrangement(SourceRows("r"), key("s", null_safe=True), SCHEMA, "k"), check=True)


def ordered_epoch(last: Task | None, rows: Rows) -> Task:
    now = task(last.report.spines if last else None, epoch=(last.epoch + 1 if last else 0), store_of=last)
    now.streams["in"] = delta(rows, BY_TIME.arrangement.key)
    arrange(now, BY_TIME)
    insert_runs(now)
    now.report.spines = {**now.before, **now.report.spines}
    return now


def test_an_arrangement_with_an_order_says_so() -> None:
    assert BY_TIME.arrangement.id == "r[s or NULL; k]"
    odd = pa.schema([("s", pa.string()), ("my time", pa.int64())])
    assert Arrangement(SourceRows("r"), key("s"), odd, "my time").id == 'r[s; "my time"]'


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("buckets", [1, 3])
def test_rows_of_a_key_stay_in_order_through_merges_and_cuts(buckets: int) -> None:
    last: Task | None = None
    merged = False
    for number in range(40):
        rows: Rows = [(None if at == 3 else (at * 7 + number * 5) % 23, "abc"[at % 3], 1) for at in range(6)]
        last = ordered_epoch(last, rows)
        refs = last.report.spines[BY_TIME.arrangement.id].refs
        merged |= any(ref.into for ref in refs)
        for bucket in range(buckets):
            cut = Spine(refs).within(*hash_range(bucket, buckets))
            for run in (read_run(last.store, ref) for ref in cut.refs):
                places = zip(hashes(run).tolist(), run["k"].is_valid().to_pylist(), run["k"].to_pylist(), strict=True)
                listed = [(hashed, known, value or 0) for hashed, known, value in places]
                assert listed == sorted(listed)
    assert merged, "no merge was ever under way between two epochs"
    assert last is not None and sum(total_of(last).values()) == 240


def total_of(last: Task) -> Counter[tuple[Any, ...]]:
    result: Counter[tuple[Any, ...]] = Counter()
    for ref in last.report.spines[BY_TIME.arrangement.id].refs:
        result.update(meaning(read_run(last.store, ref)))
    return result


@pytest.mark.usefixtures("_small")
def test_what_is_taken_back_must_be_there_at_that_time() -> None:
    last = ordered_epoch(None, [(1, "a", 1), (None, "a", 2), (2, "a", 1), (None, None, 1)])
    last = ordered_epoch(last, [(2, "a", 1)])
    last = ordered_epoch(last, [(2, "a", -2), (None, "a", -1), (None, None, -1)])
    for row in ((2, "a", -1), (1, "b", -1), (None, None, -1), (None, "a", -2), (3, "a", -1)):
        with pytest.raises(MissingRow):
            ordered_epoch(last, [row])
    gone = total_of(ordered_epoch(last, [(1, "a", -1), (None, "a", -1)]))
    assert not any(gone.values())

"""Arrange: a new run for the change, seen by later lookups of the epoch; no row leaves that is not there."""

from __future__ import annotations

import pytest

from rejoinder.errors import MissingRow
from rejoinder.operators.arrange import arrange, settle
from rejoinder.operators.task import Task
from rejoinder.plan.physical import Arrange
from rejoinder.store.run import read_run
from tests.unit.operators.tasks import arrangement, delta, meaning, task

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
    settle(now)
    return now


def test_lookups_of_the_epoch_see_the_change_only_if_they_may() -> None:
    first = settled(None, [(1, "a", 1)])
    now = epoch(first, [(2, "b", 1)])
    assert [len(list(now.refs(ID, after=after))) for after in (False, True)] == [1, 2]
    settle(now)
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
    assert raised.value.fact == "a row is deleted from `r` that is not there"
    assert str({"k": row[0], "s": row[1]}) in (raised.value.detail or "") and raised.value.hint

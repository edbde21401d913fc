"""Window: give each row the values of window functions over its partition.

The state is the result: rows with their values, by partition and in order. Old values are read, not computed again.
Algebra: output = −(old row) + (new row) for the rows near a change, nothing where both are equal. How near is a matter
of the calls (`ir.window_calls.Reach`). Running calls (ranks, sums up to the row) start from the row before the first
change, and end with the first row after the last one that has its old values. If the rows that were read do not reach
that far, four times as many are read.
Cost: O(log n) per change and run, plus the rows whose values change, however many rows a partition has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import (
    DIFF,
    HASH,
    Int64,
    contiguous,
    diffs,
    hashes,
    numbers,
    replaced,
    single_chunk,
    take,
)
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.equality import not_distinct
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.probe import expand
from rejoinder.kernels.windows.calls import Evaluation, new_rows
from rejoinder.kernels.windows.frames import Sorted
from rejoinder.kernels.windows.slices import COPY, ORDER, Needles, Slices, read_slices
from rejoinder.plan.physical.window_steps import Window
from rejoinder.runtime.steps.windows.call_values import evaluate_calls
from rejoinder.runtime.steps.windows.keyed_rows import Keyed, keyed
from rejoinder.runtime.task import Task

_FIRST_RUN = 16
"""Rows after a change that are read at first for a running call."""
_WIDER = 4


def window(task: Task, step: Window) -> None:
    """Run the step; the output carries `__hash` of the partition. An Arrange step maintains the arrangement."""
    change = keyed(task.streams.get(step.input), step.sorting, step.arrangement.key)
    if change is None:
        return
    runs = [] if step.whole else task.runs(step.arrangement, after=False)
    parts = _everything(change, step) if not runs else _changed(change, runs, step)
    result = consolidate(contiguous(parts)) if parts else None
    if result is not None and result.num_rows:
        task.streams[step.output] = result


def _everything(change: Keyed, step: Window) -> list[pa.Table]:
    """All rows with their values, of a relation that had none."""
    copies = diffs(change.rows)
    assert bool((copies > 0).all()), "a relation without rows has retracted some"
    row, copy = expand(np.arange(len(copies)), np.zeros(len(copies), np.int64), copies)
    rows = take(change.rows.select([*step.payload, ORDER, HASH]), row)
    starts = np.flatnonzero(change.begins_partition[row] & (copy == 0))
    ends = np.ones(len(starts), bool)
    ordered = Sorted(rows, starts, ends, ends, *step.sorting.compared)
    evaluation = Evaluation(ordered, step.result_schema.empty_table(), np.full(len(row), -1, np.int64), 0)
    return [_with_values(rows, copy, evaluate_calls(step, evaluation), step)]


def _changed(change: Keyed, runs: list[pa.Table], step: Window) -> list[pa.Table]:
    """The change of the rows near changed ones. Partitions whose running calls do not agree yet are read again."""
    reach = step.reach
    size = change.rows.num_rows
    low, high = change.interval(reach)
    needles = Needles(hashes(change.rows), change.floor, change.ceiling, low, high)
    before = np.full(size, reach.before + reach.context_before, np.int64)
    after = np.full(size, reach.after + reach.context_after + (_FIRST_RUN if reach.runs_on else 0), np.int64)
    active = np.arange(size)
    parts: list[pa.Table] = []
    while len(active):
        rows = take(change.rows, active)
        key = single_chunk(rows.column(ORDER))
        found = read_slices(runs, needles.select(active), before[active], after[active], key)
        slices = _Slices.of(found, rows, step)
        unfinished = slices.unfinished() if reach.runs_on else np.zeros(len(found.at_start), bool)
        is_short = unfinished[found.slice_of]
        partition = change.partition[active]
        waits = np.isin(partition, partition[is_short])  # more rows of one slice may be those of another one
        finished = np.ones(len(unfinished), bool)
        finished[found.slice_of[waits]] = False
        parts += slices.change(finished)
        after[active[is_short]] *= _WIDER
        active = active[waits]
    return parts


@dataclass(frozen=True)
class _Slices:
    """Slices before and after an epoch: the old rows, and the new ones with what they come from."""

    step: Window
    found: Slices
    ordered: Sorted
    copy: Int64
    origin: Int64
    """The old row that each new row is, −1 if it is inserted."""
    removed: Int64
    """The old rows that are not there any more."""
    last_change: Int64
    """The last new row of each slice up to its last changed place."""
    is_valid: Mask
    values: dict[str, pa.Array]

    @classmethod
    def of(cls, found: Slices, delta: pa.Table, step: Window) -> _Slices:
        """Apply the delta to the old rows, and evaluate the result. Raises `EvaluationError` if a sum overflows."""
        there = np.searchsorted(found.place, found.changed_place, "left")
        copies = np.searchsorted(found.place, found.changed_place, "right") - there
        left = copies + diffs(delta)
        assert bool((left >= 0).all()), "a row that is not there has been retracted"
        gone = np.maximum(copies - left, 0)
        removed = expand(there, there + left, gone)[1]  # of equal rows, the last ones
        more = np.maximum(left - copies, 0)
        added, new_copy = expand(np.arange(len(more)), copies, more)
        kept = np.delete(np.arange(len(found.place)), removed)
        place = np.concatenate([found.place[kept], found.changed_place[added]])
        copy = np.concatenate([numbers(found.rows, COPY)[kept], new_copy])
        order = np.lexsort((copy, place))
        names = [*step.payload, ORDER, HASH]
        rows = take(contiguous([take(found.rows.select(names), kept), take(delta.select(names), added)]), order)
        origin = np.concatenate([kept, np.full(len(added), -1, np.int64)])[order]
        slice_of = np.concatenate([found.row_slice[kept], found.slice_of[added]])[order]
        starts = np.searchsorted(slice_of, np.arange(len(found.at_start)))
        ordered = Sorted(rows, starts, found.at_start, found.at_end, *step.sorting.compared)
        last = np.full(len(found.at_start), -1, np.int64)
        np.maximum.at(last, found.slice_of, np.searchsorted(place[order], found.changed_place, "right") - 1)
        old = found.rows.select(step.result_schema.names)
        values = evaluate_calls(step, Evaluation(ordered, old, origin, step.reach.context_before))
        return cls(step, found, ordered, copy[order], origin, removed, last, _valid(ordered, step), values)

    def unfinished(self) -> Mask:
        """Which slices end before the values of running calls are what they were: the last valid row decides."""
        slice_of = self.ordered.slice_of
        is_old = (self.origin >= 0) & (np.arange(self.ordered.size) > self.last_change[slice_of])
        rows = np.flatnonzero(self.is_valid & is_old)
        last = rows[np.flatnonzero(np.diff(slice_of[rows], append=-1))]
        agrees = np.ones(len(last), bool)
        for name in self.step.running_names:
            old = single_chunk(self.found.rows.column(name)).take(pa.array(self.origin[last]))
            agrees &= not_distinct(old, self.values[name].take(pa.array(last)))
        result: Mask = ~self.found.at_end
        result[slice_of[last[agrees]]] = False
        return result

    def change(self, finished: Mask) -> list[pa.Table]:
        """The old rows that are gone or may have other values, and the new ones, of slices that are `finished`."""
        new = np.flatnonzero(self.is_valid & finished[self.ordered.slice_of])
        rows = _with_values(self.ordered.rows, self.copy, self.values, self.step)
        removed = self.removed[finished[self.found.row_slice[self.removed]]]
        old = np.concatenate([self.origin[new][self.origin[new] >= 0], removed])
        before = take(self.found.rows.select(rows.column_names), old)
        return [take(rows, new), replaced(before, DIFF, np.full(len(old), -1, np.int64))]


def _valid(rows: Sorted, step: Window) -> Mask:
    """Which rows have all that their calls need in the slice."""
    reach = step.reach
    result = new_rows(rows, reach.context_before)
    result &= (rows.end - np.arange(rows.size) > reach.context_after) | rows.at_end[rows.slice_of]
    for _, call in step.calls:
        if call.function not in ("offset", "rank", "dense_rank"):
            result &= rows.complete(call.frame)
    return result


def _with_values(rows: pa.Table, copy: Int64, values: dict[str, pa.Array], step: Window) -> pa.Table:
    columns = {name: single_chunk(rows.column(name)) for name in rows.column_names}
    columns |= {COPY: pa.array(copy, pa.int64())} | values
    schema = step.arrangement.schema
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.Table.from_arrays([*arrays, columns[HASH]], schema=schema.append(pa.field(HASH, pa.uint64())))

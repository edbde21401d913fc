"""First rows: of each partition, the rows up to a rank, with the values of window functions.

The state is the rows of the input in order. Algebra: output = first rows after the epoch − first rows before it, of the
partitions that changed. Both are computed from the same slice: as many live rows from the start of the partition as the
rank asks for, and as many more as are retracted. Where rows are equal in ORDER BY, RANK and DENSE_RANK ask for more:
then four times as many are read. Cost: O(log n + k) per changed partition and run, however many rows a partition has.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import (
    DIFF,
    HASH,
    Int64,
    contiguous,
    diffs,
    hashes,
    replaced,
    single_chunk,
    take,
)
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.probe import expand
from rejoinder.kernels.windows.calls import Evaluation
from rejoinder.kernels.windows.frames import Sorted
from rejoinder.kernels.windows.slices import Needles, Slices, read_slices
from rejoinder.plan.physical.window_steps import FirstRows
from rejoinder.runtime.steps.windows.call_values import evaluate_calls
from rejoinder.runtime.steps.windows.keyed_rows import Keyed, keyed
from rejoinder.runtime.task import Task

_WIDER = 4


def first_rows(task: Task, step: FirstRows) -> None:
    """Run the step; the output carries `__hash` of the partition. An Arrange step maintains the arrangement."""
    change = keyed(task.streams.get(step.input), step.sorting, step.arrangement.key, step.order)
    if change is None:
        return
    runs = [] if step.whole else task.runs(step.arrangement.id, after=False)
    parts = _changed(change, runs, step)
    result = consolidate(contiguous(parts)) if parts else None
    if result is not None and result.num_rows:
        task.streams[step.output] = result


def _changed(change: Keyed, runs: list[pa.Table], step: FirstRows) -> list[pa.Table]:
    """The change of the first rows. Partitions of which too few rows were read are read again."""
    partition, delta = change.partition, change.rows
    first = np.flatnonzero(change.begins_partition)
    floor = change.floor.take(pa.array(first))
    needles = Needles(hashes(delta)[first], floor, change.ceiling.take(pa.array(first)), floor, floor)
    nothing = np.zeros(len(first), np.int64)
    retracted = np.bincount(partition, np.maximum(-diffs(delta), 0), len(first)).astype(np.int64)
    wanted = step.most + 1 + retracted
    active = np.arange(len(first))
    parts: list[pa.Table] = []
    while len(active):
        rows = np.flatnonzero(np.isin(partition, active))
        needle_of = np.searchsorted(active, partition[rows])
        changed = take(delta, rows)
        key = single_chunk(changed.column(step.order))
        if runs:
            found = read_slices(
                runs, needles.select(active), nothing[active], wanted[active], key, needle_of, step.order
            )
        else:
            found = Slices.empty(delta.slice(0, 0), np.arange(len(rows)), len(active))
        before = _Ranked.of(found, None, step)
        after = _Ranked.of(found, (changed, needle_of), step)
        unfinished = ~found.at_end & ~(before.reaches_limit & after.reaches_limit)
        finished = ~unfinished[found.slice_of]
        parts += [before.result(~unfinished, -1), after.result(~unfinished, 1)]
        active = active[~finished]
        wanted[active] *= _WIDER
    return [part for part in parts if part.num_rows]


class _Ranked:
    """The rows of slices with their values."""

    def __init__(self, step: FirstRows, rows: Sorted, values: dict[str, pa.Array]) -> None:
        self.step, self.rows, self.values = step, rows, values
        ranks: Int64 = np.asarray(values[step.rank])
        self.is_first: Mask = ranks <= step.most
        self.reaches_limit = np.zeros(len(rows.starts), bool)
        self.reaches_limit[rows.slice_of[~self.is_first]] = True

    @classmethod
    def of(cls, found: Slices, change: tuple[pa.Table, Int64] | None, step: FirstRows) -> _Ranked:
        """The rows of the slices; with a change (rows, and the needle of each), as they are after it.

        A slice that does not reach the end of its partition does not know the rows after its last one.
        """
        names = [*step.payload, HASH]
        rows, place, slice_of = found.rows.select(names), found.place, found.row_slice
        if change is not None:
            delta, needle_of = change
            added = diffs(delta)
            inside = found.at_end[found.slice_of[needle_of]] | (found.changed_place <= found.last_place[needle_of])
            added = np.where(inside, added, 0)
            there = np.searchsorted(place, found.changed_place, "left")
            gone = expand(there, there, np.maximum(-added, 0))[1]
            kept = np.delete(np.arange(len(place)), gone)
            new = np.repeat(np.arange(len(added)), np.maximum(added, 0))
            together = np.concatenate([place[kept], found.changed_place[new]])
            order = np.argsort(together, kind="stable")
            rows = take(contiguous([take(rows, kept), take(delta.select(names), new)]), order)
            slice_of = np.concatenate([slice_of[kept], found.slice_of[needle_of][new]])[order]
        starts = np.searchsorted(slice_of, np.arange(len(found.at_end)))
        ordered = Sorted(rows, starts, np.ones(len(starts), bool), found.at_end, *step.sorting.compared)
        nobody = np.full(rows.num_rows, -1, np.int64)
        evaluation = Evaluation(ordered, step.result_schema.empty_table(), nobody, 0)
        return cls(step, ordered, evaluate_calls(step, evaluation))

    def result(self, finished: Mask, sign: int) -> pa.Table:
        """The first rows of slices that are `finished`, with their values."""
        kept = np.flatnonzero(self.is_first & finished[self.rows.slice_of])
        rows = take(self.rows.rows.select([*self.step.payload]), kept)
        at = pa.array(kept)
        for field in self.step.result_schema:
            rows = rows.append_column(field, self.values[field.name].take(at).cast(field.type))
        rows = rows.append_column(HASH, self.rows.rows.column(HASH).take(at))
        return replaced(rows, DIFF, np.full(len(kept), sign, np.int64))

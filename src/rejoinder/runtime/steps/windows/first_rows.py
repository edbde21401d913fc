"""First rows: of each partition, the rows up to a rank, with the values of window functions.

The state is the rows of the input in order; of an append-only input, only the first ones. Algebra: output = first rows
after the epoch − first rows before it, of the partitions that changed. Both are computed from the same slice: as many
live rows from the start of the partition as the rank asks for, and as many more as are retracted. Where rows are equal
in ORDER BY, RANK and DENSE_RANK ask for more: then four times as many are read.
Cost: O(log n + k) per changed partition and run, however many rows a partition has.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from rejoinder.kernels.arrow.consolidate import surviving
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.probe import expand
from rejoinder.kernels.windows.calls import Columns, Evaluation
from rejoinder.kernels.windows.frames import Gathered, Sorted
from rejoinder.kernels.windows.slices import Needles, Slices, read_slices
from rejoinder.plan.physical.window_steps import FirstRows
from rejoinder.runtime.steps.windows.call_values import evaluate_calls
from rejoinder.runtime.steps.windows.keyed_rows import Keyed, keyed
from rejoinder.runtime.task import Task

_WIDER = 4
_PLACE = "place"


def first_rows(task: Task, step: FirstRows) -> None:
    """Run the step; the output carries `__hash` of the partition. An Arrange step maintains the arrangement."""
    change = keyed(task.streams.get(step.input), step.sorting, step.arrangement.key, step.order, repeats=True)
    if change is None:
        return
    runs = [] if step.whole else task.runs(step.arrangement, after=False)
    for stream, parts in _changed(_nearest(change, step), runs, step).items():
        parts = [part for part in parts if part.num_rows]
        if parts:
            task.streams[stream] = contiguous(parts)


def _nearest(change: Keyed, step: FirstRows) -> Keyed:
    """The rows of a change that can be among the first ones.

    A row that so many rows of the same change precede is not, unless rows of its partition are retracted. RANK and
    DENSE_RANK count rows otherwise: all of them remain.
    """
    count = diffs(change.rows)
    if dict(step.calls)[step.rank].function != "count" or (len(count) and int(count.min()) < 0):
        return change
    first = np.flatnonzero(change.begins_partition)
    total = np.cumsum(count) - count
    preceding = total - total[first][change.partition]
    kept = np.flatnonzero(preceding < step.most)
    return change if len(kept) == len(count) else change.selected(kept)


def _changed(change: Keyed, runs: list[pa.Table], step: FirstRows) -> dict[str, list[pa.Table]]:
    """The change of the first rows, by stream. Partitions of which too few rows were read are read again."""
    partition, delta = change.partition, change.rows
    first = np.flatnonzero(change.begins_partition)
    floor = change.floor.take(pa.array(first))
    needles = Needles(hashes(delta)[first], floor, change.ceiling.take(pa.array(first)), floor, floor)
    nothing = np.zeros(len(first), np.int64)
    retracted = np.bincount(partition, np.maximum(-diffs(delta), 0), len(first)).astype(np.int64)
    wanted = step.most + 1 + retracted
    active = np.arange(len(first))
    results: dict[str, list[pa.Table]] = {stream: [] for stream in (step.output, step.kept) if stream is not None}
    while len(active):
        rows = np.flatnonzero(np.isin(partition, active))
        needle_of = np.searchsorted(active, partition[rows])
        changed = delta if len(rows) == delta.num_rows else take(delta, rows)
        key = single_chunk(changed.column(step.order))
        if runs:
            found = read_slices(
                runs, needles.select(active), nothing[active], wanted[active], key, needle_of, step.order
            )
        else:
            found = Slices.empty(delta.slice(0, 0), np.arange(len(rows)), len(active))
        pool = _pool(found.rows, changed, step)
        before = _Ranked.of(pool, found, None, step)
        after = _Ranked.of(pool, found, (diffs(changed), needle_of), step)
        unfinished = ~found.at_end & ~(before.reaches_limit & after.reaches_limit)
        finished = ~unfinished[found.slice_of]
        results[step.output].append(_difference(before, after, ~unfinished, step.result_schema, step.payload))
        if step.kept is not None:
            columns = (*step.payload, step.order)
            results[step.kept].append(_difference(before, after, ~unfinished, pa.schema([]), columns))
        active = active[~finished]
        wanted[active] *= _WIDER
    return results


def _pool(found: pa.Table, changed: pa.Table, step: FirstRows) -> pa.Table:
    """The rows that were read, then those that changed, with the columns that the result or the state has."""
    names = [*step.payload, *([] if step.kept is None else [step.order]), HASH]
    return contiguous([found.select(names), changed.select(names)]) if found.num_rows else changed.select(names)


class _Ranked:
    """The rows of slices, as positions in a pool, with their values."""

    def __init__(self, step: FirstRows, rows: Sorted, pool: Gathered, place: Int64, values: Columns) -> None:
        self.rows, self.pool, self.place, self.values = rows, pool, place, values
        ranks: Int64 = np.asarray(values[step.rank])
        self.is_first: Mask = ranks <= step.most
        self.reaches_limit = np.zeros(len(rows.starts), bool)
        self.reaches_limit[rows.slice_of[~self.is_first]] = True

    @classmethod
    def of(cls, pool: pa.Table, found: Slices, change: tuple[Int64, Int64] | None, step: FirstRows) -> _Ranked:
        """The rows of the slices; with a change (diffs of rows, and the needle of each), as they are after it.

        A slice that does not reach the end of its partition does not know the rows after its last one.
        """
        place, slice_of = found.place, found.row_slice
        positions = np.arange(len(place))
        if change is not None:
            added, needle_of = change
            inside = found.at_end[found.slice_of[needle_of]] | (found.changed_place <= found.last_place[needle_of])
            added = np.where(inside, added, 0)
            there = np.searchsorted(place, found.changed_place, "left")
            gone = expand(there, there, np.maximum(-added, 0))[1]
            kept = np.delete(positions, gone)
            new = np.repeat(np.arange(len(added)), np.maximum(added, 0))
            together = np.concatenate([place[kept], found.changed_place[new]])
            order = np.argsort(together, kind="stable")
            positions = np.concatenate([kept, len(place) + new])[order]
            slice_of = np.concatenate([slice_of[kept], found.slice_of[needle_of][new]])[order]
            place = together[order]
        starts = np.searchsorted(slice_of, np.arange(len(found.at_end)))
        rows = Gathered(pool, positions)
        ordered = Sorted(rows, starts, np.ones(len(starts), bool), found.at_end, *step.sorting.compared)
        nobody = np.full(rows.num_rows, -1, np.int64)
        evaluation = Evaluation(ordered, step.result_schema.empty_table(), nobody, 0)
        return cls(step, ordered, rows, place, evaluate_calls(step, evaluation))

    def first(self, finished: Mask) -> Int64:
        """The first rows of slices that are `finished`."""
        return np.flatnonzero(self.is_first & finished[self.rows.slice_of])

    def placed(self, rows: Int64, values: pa.Schema, sign: int) -> pa.Table:
        """Rows as place and some values, which tell them apart as well as all their columns do."""
        at = pa.array(rows)
        result = pa.table({_PLACE: pa.array(self.place[rows])})
        for field in values:
            result = result.append_column(field, self.values[field.name].take(at).cast(field.type))
        return replaced(result, DIFF, np.full(len(rows), sign, np.int64))


def _difference(before: _Ranked, after: _Ranked, finished: Mask, values: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """The change of the first rows of slices that are `finished`, as columns of the input and values of calls.

    Most rows were among the first ones before, with the same values, or their place is new. The result is sorted by
    hash and sort key.
    """
    old, new = before.first(finished), after.first(finished)
    placed = contiguous([before.placed(old, values, -1), after.placed(new, values, 1)])
    position = np.concatenate([before.pool.positions[old], after.pool.positions[new]])
    place, net = numbers(placed, _PLACE), diffs(placed)
    was, is_now = (np.bincount(place[net == sign], minlength=int(place.max(initial=0)) + 1) > 0 for sign in (-1, 1))
    both = (was & is_now)[place]
    rows, shared = np.flatnonzero(~both), np.flatnonzero(both)
    net = net[rows]
    if len(shared):
        survivors, sums = surviving(take(placed, shared))
        rows, net = np.concatenate([rows, shared[survivors]]), np.concatenate([net, sums])
    sequence = np.argsort(place[rows], kind="stable")
    rows, net = rows[sequence], net[sequence]
    payload = take(before.pool.table.select([*columns, HASH]), position[rows])
    result = payload.drop_columns([HASH])
    computed = take(placed.select(values.names), rows)
    for name in values.names:
        result = result.append_column(name, computed.column(name))
    return replaced(result.append_column(HASH, payload.column(HASH)), DIFF, net)

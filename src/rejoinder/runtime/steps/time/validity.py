"""Validity: add to each row the end of its validity, which is the next later live time of its partition.

Algebra: output = V′ with its ends − V with its ends, where V and V′ are the relation before and after this epoch.
Besides the changed rows, only rows at the last live time before an inserted or deleted time get a new end: the row with
the old end is retracted, the one with the new end inserted. Rows at equal times of a partition share their end. A row
without a time is never valid and is left out. After the last time of a partition a row is valid forever
(`kernels.arrow.ordered.last_value`). Cost: O(log n) per changed time, plus the rows whose end changes, however many
versions a partition has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64, contiguous, diffs, hashes, replaced, single_chunk, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.nearest import Search, nearest, weights, within
from rejoinder.kernels.arrow.ordered import (
    Bound,
    as_column,
    bounds_of,
    last_value,
    order_by_hash_and_value,
)
from rejoinder.plan.physical.steps import Validity
from rejoinder.runtime.matching.range_matching import search_runs
from rejoinder.runtime.steps.time.timed_change import timed_change
from rejoinder.runtime.task import Task


def validity(task: Task, step: Validity) -> None:
    """Run the step; the output carries `__hash` of the partition. An Arrange step maintains the arrangement."""
    change = timed_change(task, step.input, step.arrangement, step.arrangement.schema.names)
    if change is None:
        return
    runs = [] if step.whole else task.runs(step.arrangement.id, after=False)
    result = _Ends(step, runs, change).change()
    if result.num_rows:
        task.streams[step.output] = result


@dataclass(frozen=True)
class _Ends:
    """The ends of rows before an epoch (of `runs`) and after it (of `runs` and `delta`)."""

    step: Validity
    runs: Sequence[pa.Table]
    delta: pa.Table

    def change(self) -> pa.Table:
        """Return the change of the rows with their ends."""
        times, number = self._distinct(self.delta)
        before, _ = self._searches(times)
        was_live, is_live = self._live(before, times, number)
        # The end of a row changes if that time is deleted, or if an earlier one is inserted. Either way the row is at
        # the last live time before the changed one.
        previous = self._previous(before, times, was_live != is_live)
        times, number = self._distinct(contiguous([self.delta.select(times.column_names), previous]))
        number = number[: self.delta.num_rows]
        before, after = self._searches(times)
        was_live, is_live = self._live(before, times, number)
        old, new = self._ends(before, times), self._ends(after, times)
        # Rows whose time is deleted had the old end.
        parts = [self._with_ends(self.delta, np.where(is_live, new, old)[number], 1)]
        moved = Bound(self._values(times), known=was_live & is_live & (old != new))
        for run, (left, right) in zip(before.runs, within(before, moved, moved), strict=True):
            if len(left):
                rows = replaced(take(run.table.select(self._names), right), DIFF, run.diffs(right))
                parts += [self._with_ends(rows, old[left], -1), self._with_ends(rows, new[left], 1)]
        return consolidate(contiguous(parts))

    @property
    def _names(self) -> list[str]:
        return [*self.step.arrangement.schema.names, HASH]

    @property
    def _time(self) -> str:
        assert self.step.arrangement.order is not None
        return self.step.arrangement.order

    def _distinct(self, rows: pa.Table) -> tuple[pa.Table, Int64]:
        """Return the distinct partitions and times of rows, sorted like a run, and the number of that of each row."""
        parts = self.step.arrangement.key.parts
        assert all(part.is_column for part in parts), "a partition is a tuple of columns"
        names = list(dict.fromkeys((*(part.columns[0] for part in parts), self._time)))
        rows = rows.select([*names, HASH])
        groups = group_rows(rows, names)
        distinct = take(rows, groups.starts)
        order = order_by_hash_and_value(hashes(distinct), single_chunk(distinct.column(self._time)))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return take(distinct, order), place[groups.group_of]

    def _searches(self, times: pa.Table) -> tuple[Search, Search]:
        """Return the searches for times in the relation before and after the epoch."""
        arrangement = self.step.arrangement
        after = search_runs(times, [*self.runs, self.delta], arrangement.key, arrangement)
        return replace(after, runs=after.runs[:-1], met=after.met[:-1]), after

    def _values(self, times: pa.Table) -> Int64:
        return bounds_of(times.column(self._time))[0]

    def _live(self, before: Search, times: pa.Table, number: Int64) -> tuple[Mask, Mask]:
        """Return which times are live before and after the epoch; `number` is the time of each changed row."""
        count = weights(before, self._values(times))
        change = np.bincount(number, weights=diffs(self.delta), minlength=before.size).astype(np.int64)
        return count > 0, count + change > 0

    def _previous(self, search: Search, times: pa.Table, which: Mask) -> pa.Table:
        """Return the live times just before the selected times."""
        values, exists = nearest(search, self._values(times), later=False, strict=True, known=which)
        rows = np.flatnonzero(exists)
        earlier = as_column(values[rows], times.field(self._time).type)
        return replaced(take(times, rows), self._time, earlier)

    def _ends(self, search: Search, times: pa.Table) -> Int64:
        """Return the live times just after the times."""
        values, exists = nearest(search, self._values(times), later=True, strict=True)
        return np.where(exists, values, last_value(times.field(self._time).type))

    def _with_ends(self, rows: pa.Table, ends: Int64, sign: int) -> pa.Table:
        """Return rows with their ends after their own columns."""
        place = len(self.step.arrangement.schema)
        column = as_column(ends, rows.field(self._time).type)
        return replaced(rows, DIFF, sign * diffs(rows)).add_column(place, self.step.end, column)

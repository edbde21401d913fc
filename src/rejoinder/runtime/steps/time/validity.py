"""Validity: add to each row the end of its validity, which is the next later live time of its partition.

Algebra: output = V′ with its ends − V with its ends, where V and V′ are the relation before and after this epoch.
Besides the changed rows, only rows at the last live time before an inserted or deleted time get a new end: the row with
the old end is retracted, the one with the new end inserted. Rows at equal times of a partition share their end. A row
without a time is never valid and is left out. After the last time of a partition a row is valid forever
(`kernels.arrow.ordered.last_value`). Cost: O(log n) per changed time, plus the rows whose end changes, however many
versions a partition has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, Int64, contiguous, replaced, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.nearest import Search, nearest, within
from rejoinder.kernels.arrow.ordered import Bound, last_value
from rejoinder.plan.physical.steps import Validity
from rejoinder.runtime.steps.time.timed_rows import TimedRows, timed_change
from rejoinder.runtime.task import Task


def validity(task: Task, step: Validity) -> None:
    """Run the step; the output carries `__hash` of the partition. An Arrange step maintains the arrangement."""
    change = timed_change(task, step.input, step.arrangement, step.arrangement.schema.names)
    if change is None:
        return
    runs = [] if step.whole else task.runs(step.arrangement, after=False)
    result = _Ends(step.arrangement, runs, change, step.end).change()
    if result.num_rows:
        task.streams[step.output] = result


@dataclass(frozen=True)
class _Ends(TimedRows):
    """The ends of rows before and after an epoch."""

    end: str

    def change(self) -> pa.Table:
        """Return the change of the rows with their ends."""
        times, number = self.distinct(self.delta)
        before, _ = self.searches(times)
        was_live, is_live = self.live(before, times, number)
        # The end of a row changes if that time is deleted, or if an earlier one is inserted. Either way the row is at
        # the last live time before the changed one.
        previous = self.neighbours(before, times, was_live != is_live, later=False)
        times, number = self.distinct(contiguous([self.delta.select(times.column_names), previous]))
        number = number[: self.delta.num_rows]
        before, after = self.searches(times)
        was_live, is_live = self.live(before, times, number)
        old, new = self._ends(before, times), self._ends(after, times)
        # Rows whose time is deleted had the old end.
        parts = [self.with_times(self.delta, self.end, np.where(is_live, new, old)[number], 1)]
        moved = Bound(self.values(times), known=was_live & is_live & (old != new))
        for run, (left, right) in zip(before.runs, within(before, moved, moved), strict=True):
            if len(left):
                rows = replaced(take(run.table.select(self.names), right), DIFF, run.diffs(right))
                parts += [self.with_times(rows, self.end, old[left], -1), self.with_times(rows, self.end, new[left], 1)]
        return consolidate(contiguous(parts))

    def _ends(self, search: Search, times: pa.Table) -> Int64:
        """Return the live times just after the times."""
        values, exists = nearest(search, self.values(times), later=True, strict=True)
        return np.where(exists, values, last_value(times.field(self.time).type))

"""Session: add to each row the start of its session, a chain of live times of its partition without a gap in between.

Algebra: output = V′ with its starts − V with its starts, where V and V′ are the relation before and after this epoch.
A start is the first time of a chain in which each time is at most `gap` after the one before it. The arrangement holds
the rows with their starts, so the start of a row that continues a session is read from the row before it.

A time that becomes live or dead can change the starts of the times after it, up to the next changed time or the next
gap. Between two changed times no link changes, so only the chain that begins right after a changed time can get another
start; sessions that begin later keep theirs. Cost: O(log n) per changed time, plus the rows whose start changes. A row
at the end of a session, or within it, changes no other row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.chains import chain_ends
from rejoinder.kernels.arrow.columns import DIFF, Int64, contiguous, replaced, single_chunk, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.nearest import Search, within
from rejoinder.kernels.arrow.ordered import GREATEST, Bound, order_values
from rejoinder.plan.physical.steps import Session
from rejoinder.runtime.steps.time.timed_rows import TimedRows, timed_change
from rejoinder.runtime.task import Task


def session(task: Task, step: Session) -> None:
    """Run the step; the output carries `__hash` of the partition. An Arrange step maintains the arrangement."""
    names = [name for name in step.arrangement.schema.names if name != step.start]
    change = timed_change(task, step.input, step.arrangement, names)
    if change is None:
        return
    runs = [] if step.whole else task.runs(step.arrangement, after=False)
    result = _Sessions(step.arrangement, runs, change, step.start, step.gap).change()
    if result.num_rows:
        task.streams[step.output] = result


@dataclass(frozen=True)
class _Starts:
    """Partitions and times, sorted like a run, with their starts before and after the epoch."""

    times: pa.Table
    was_live: Mask
    is_live: Mask
    old: Int64
    new: Int64
    moved: Mask
    """Which times begin a chain whose start changes though its times do not."""
    stop: Int64
    """The next changed time of the partition, or the end of all times."""


@dataclass(frozen=True)
class _Sessions(TimedRows):
    """The starts of rows before and after an epoch."""

    start: str
    gap: int

    def change(self) -> pa.Table:
        """Return the change of the rows with their starts."""
        times, number = self.distinct(self.delta)
        before, after = self.searches(times)
        was_live, is_live = self.live(before, times, number)
        changed = was_live != is_live
        neighbours = [self.neighbours(after, times, changed, later=later) for later in (False, True)]
        times, number = self.distinct(contiguous([self.delta.select(times.column_names), *neighbours]))
        number = number[: self.delta.num_rows]
        before, _ = self.searches(times)
        starts = self._starts(before, times, *self.live(before, times, number))
        # A row whose time is dead after the epoch had the old start.
        own = np.where(starts.is_live, starts.new, starts.old)
        parts = [self.with_times(self.delta, self.start, own[number], 1)]
        values = self.values(times)
        last = chain_ends(before, values, starts.stop, self.gap, starts.moved)
        low, high = Bound(values, known=starts.moved), Bound(last, known=starts.moved)
        for run, (left, right) in zip(before.runs, within(before, low, high), strict=True):
            if len(left):
                rows = replaced(take(run.table.select(self.names), right), DIFF, run.diffs(right))
                old = order_values(single_chunk(rows.column(self.start))).astype(np.int64)
                rows = rows.drop_columns([self.start])
                for times_of_rows, sign in ((old, -1), (starts.new[left], 1)):
                    parts.append(self.with_times(rows, self.start, times_of_rows, sign))
        return consolidate(contiguous(parts))

    def _starts(self, before: Search, times: pa.Table, was_live: Mask, is_live: Mask) -> _Starts:
        """Return the starts of times, which include the live neighbours of every changed time.

        Two consecutive live times with a changed time at or between them are neighbours: they are linked if no gap is
        between them. Without one, they are linked as before, which is what equal old starts say.
        """
        values, old = self.values(times), self._old_starts(before, times, was_live)
        partition = self._partitions(times)
        order = np.lexsort((values, partition))
        value, start, group = values[order], old[order], partition[order]
        changed, live = (was_live != is_live)[order], is_live[order]
        changes = np.cumsum(changed)
        first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        changes_before = (changes[first] - changed[first])[np.cumsum(np.isin(np.arange(len(order)), first)) - 1]

        at = np.flatnonzero(live)
        previous = np.concatenate([[-1], at[:-1]])[: len(at)]
        previous[group[at] != group[previous]] = -1
        alone = previous < 0
        since = np.where(alone, changes_before[at], changes[previous] - changed[previous])
        is_touched = changes[at] > since
        linked = ~alone & np.where(is_touched, value[at] - value[previous] <= self.gap, start[at] == start[previous])
        own = np.where(is_touched, value[at], start[at])
        source = np.maximum.accumulate(np.where(linked, 0, np.arange(len(at)))) if len(at) else at
        new = value.copy()
        new[at] = own[source]
        moved = np.zeros(len(order), bool)
        moved[at] = is_touched & ~changed[at] & (new[at] != start[at])
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        stop = _next_changed(value, group, changed)
        return _Starts(times, was_live, is_live, old, new[place], moved[place], stop[place])

    def _partitions(self, times: pa.Table) -> Int64:
        """Return the number of the partition of each time."""
        if not self.partition:
            return np.zeros(times.num_rows, np.int64)
        return group_rows(times, self.partition).group_of

    def _old_starts(self, before: Search, times: pa.Table, was_live: Mask) -> Int64:
        """Return the starts of times before the epoch; that of a time which was not live is the time itself.

        All live rows at a time have the same start. Rows with another one are retracted by a later run.
        """
        result: Int64 = self.values(times).copy()
        here = Bound(result.copy(), known=was_live)
        needles, starts, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for run, (left, right) in zip(before.runs, within(before, here, here), strict=True):
            needles.append(left)
            starts.append(order_values(single_chunk(take(run.table.select([self.start]), right).column(0))))
            counts.append(run.diffs(right))
        needle, start, count = np.concatenate(needles), np.concatenate(starts).astype(np.int64), np.concatenate(counts)
        if len(needle):
            order = np.lexsort((start, needle))
            needle, start = needle[order], start[order]
            runs = np.flatnonzero(np.concatenate([[True], (needle[1:] != needle[:-1]) | (start[1:] != start[:-1])]))
            live = runs[np.add.reduceat(count[order], runs) > 0]
            result[needle[live]] = start[live]
        return result


def _next_changed(value: Int64, group: Int64, changed: Mask) -> Int64:
    """Return the next changed time of the same partition after each time, or the end of all times."""
    size = len(value)
    places = np.where(changed, np.arange(size), size)
    following = np.append(np.minimum.accumulate(places[::-1])[::-1][1:], size)[:size]
    inside = np.minimum(following, size - 1)
    same = (following < size) & (group[inside] == group)
    return np.where(same, value[inside], GREATEST)

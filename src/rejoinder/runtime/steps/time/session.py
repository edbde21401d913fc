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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.chains import chain_ends
from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64, contiguous, diffs, hashes, replaced, single_chunk, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.nearest import Search, nearest, weights, within
from rejoinder.kernels.arrow.ordered import (
    GREATEST,
    Bound,
    as_column,
    bounds_of,
    order_by_hash_and_value,
    order_values,
)
from rejoinder.plan.physical.steps import Session
from rejoinder.runtime.matching.range_matching import search_runs
from rejoinder.runtime.steps.time.timed_change import timed_change
from rejoinder.runtime.task import Task


def session(task: Task, step: Session) -> None:
    """Run the step; the output carries `__hash` of the partition. An Arrange step maintains the arrangement."""
    names = [name for name in step.arrangement.schema.names if name != step.start]
    change = timed_change(task, step.input, step.arrangement, names)
    if change is None:
        return
    runs = [] if step.whole else task.runs(step.arrangement.id, after=False)
    result = _Sessions(step, runs, change).change()
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
class _Sessions:
    """The starts of rows before an epoch (of `runs`) and after it (of `runs` and `delta`)."""

    step: Session
    runs: Sequence[pa.Table]
    delta: pa.Table

    def change(self) -> pa.Table:
        """Return the change of the rows with their starts."""
        times, number = self._distinct(self.delta)
        _, after = self._searches(times)
        was_live, is_live = self._live(times, number)
        changed = was_live != is_live
        neighbours = [self._neighbours(after, times, changed, later=later) for later in (False, True)]
        times, number = self._distinct(contiguous([self.delta.select(times.column_names), *neighbours]))
        number = number[: self.delta.num_rows]
        starts = self._starts(times, *self._live(times, number))
        # A row whose time is dead after the epoch had the old start.
        own = np.where(starts.is_live, starts.new, starts.old)
        parts = [self._with_start(self.delta, own[number], 1)]
        before, _ = self._searches(times)
        values = self._values(times)
        last = chain_ends(before, values, starts.stop, self.step.gap, starts.moved)
        low, high = Bound(values, known=starts.moved), Bound(last, known=starts.moved)
        for run, (left, right) in zip(before.runs, within(before, low, high), strict=True):
            if len(left):
                rows = replaced(take(run.table.select(self._names), right), DIFF, run.diffs(right))
                old = order_values(single_chunk(rows.column(self.step.start))).astype(np.int64)
                rows = rows.drop_columns([self.step.start])
                parts += [self._with_start(rows, old, -1), self._with_start(rows, starts.new[left], 1)]
        return consolidate(contiguous(parts))

    @property
    def _names(self) -> list[str]:
        return [*self.step.arrangement.schema.names, HASH]

    @property
    def _time(self) -> str:
        assert self.step.arrangement.order is not None
        return self.step.arrangement.order

    @property
    def _partition(self) -> list[str]:
        parts = self.step.arrangement.key.parts
        assert all(part.is_column for part in parts), "a partition is a tuple of columns"
        return list(dict.fromkeys(part.columns[0] for part in parts))

    def _distinct(self, rows: pa.Table) -> tuple[pa.Table, Int64]:
        """Return the distinct partitions and times of rows, sorted like a run, and the number of that of each row."""
        names = list(dict.fromkeys((*self._partition, self._time)))
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

    def _live(self, times: pa.Table, number: Int64) -> tuple[Mask, Mask]:
        """Return which times are live before and after the epoch; `number` is the time of each changed row."""
        before, _ = self._searches(times)
        count = weights(before, self._values(times))
        change = np.bincount(number, weights=diffs(self.delta), minlength=before.size).astype(np.int64)
        return count > 0, count + change > 0

    def _neighbours(self, search: Search, times: pa.Table, which: Mask, *, later: bool) -> pa.Table:
        """Return the live times just before or after the selected times."""
        values, exists = nearest(search, self._values(times), later=later, strict=True, known=which)
        rows = np.flatnonzero(exists)
        return replaced(take(times, rows), self._time, as_column(values[rows], times.field(self._time).type))

    def _starts(self, times: pa.Table, was_live: Mask, is_live: Mask) -> _Starts:
        """Return the starts of times, which include the live neighbours of every changed time.

        Two consecutive live times with a changed time at or between them are neighbours: they are linked if no gap is
        between them. Without one, they are linked as before, which is what equal old starts say.
        """
        values, old = self._values(times), self._old_starts(times, was_live)
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
        linked = ~alone & np.where(
            is_touched, value[at] - value[previous] <= self.step.gap, start[at] == start[previous]
        )
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
        if not self._partition:
            return np.zeros(times.num_rows, np.int64)
        return group_rows(times, self._partition).group_of

    def _old_starts(self, times: pa.Table, was_live: Mask) -> Int64:
        """Return the starts of times before the epoch; that of a time which was not live is the time itself.

        All live rows at a time have the same start. Rows with another one are retracted by a later run.
        """
        before, _ = self._searches(times)
        result: Int64 = self._values(times).copy()
        here = Bound(result.copy(), known=was_live)
        needles, starts, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for run, (left, right) in zip(before.runs, within(before, here, here), strict=True):
            needles.append(left)
            starts.append(order_values(single_chunk(take(run.table.select([self.step.start]), right).column(0))))
            counts.append(run.diffs(right))
        needle, start, count = np.concatenate(needles), np.concatenate(starts).astype(np.int64), np.concatenate(counts)
        if len(needle):
            order = np.lexsort((start, needle))
            needle, start = needle[order], start[order]
            runs = np.flatnonzero(np.concatenate([[True], (needle[1:] != needle[:-1]) | (start[1:] != start[:-1])]))
            live = runs[np.add.reduceat(count[order], runs) > 0]
            result[needle[live]] = start[live]
        return result

    def _with_start(self, rows: pa.Table, starts: Int64, sign: int) -> pa.Table:
        """Return rows with their starts after their own columns."""
        place = len(self.step.arrangement.schema) - 1
        column = as_column(starts, rows.field(self._time).type)
        return replaced(rows, DIFF, sign * diffs(rows)).add_column(place, self.step.start, column)


def _next_changed(value: Int64, group: Int64, changed: Mask) -> Int64:
    """Return the next changed time of the same partition after each time, or the end of all times."""
    size = len(value)
    places = np.where(changed, np.arange(size), size)
    following = np.append(np.minimum.accumulate(places[::-1])[::-1][1:], size)[:size]
    inside = np.minimum(following, size - 1)
    same = (following < size) & (group[inside] == group)
    return np.where(same, value[inside], GREATEST)

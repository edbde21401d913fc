"""A relation that is kept by partition and time: its change in an epoch, its live times before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64, diffs, hashes, replaced, single_chunk, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.nearest import Search, nearest, weights
from rejoinder.kernels.arrow.ordered import as_column, bounds_of, order_by_hash_and_value, sorted_by_hash_and_value
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.runtime.matching.range_matching import search_runs
from rejoinder.runtime.task import Task, partition_hashes


def timed_change(task: Task, stream: str, arrangement: Arrangement, names: Sequence[str]) -> pa.Table | None:
    """Return the net change of the rows that have a time, with columns `names`, sorted like a run; None if empty."""
    rows = task.streams.get(stream)
    if rows is None or not rows.num_rows:
        return None
    assert arrangement.order is not None
    if HASH not in rows.column_names:
        rows = rows.append_column(HASH, pa.array(partition_hashes(rows, arrangement.key)[0]))
    rows = replaced(rows, DIFF, diffs(rows)).select([*names, HASH, DIFF])
    timed = np.asarray(rows.column(arrangement.order).is_valid())
    rows = consolidate(rows if timed.all() else take(rows, np.flatnonzero(timed)))
    return sorted_by_hash_and_value(rows, arrangement.order) if rows.num_rows else None


@dataclass(frozen=True)
class TimedRows:
    """The rows of an arrangement before an epoch (of `runs`) and after it (of `runs` and `delta`)."""

    arrangement: Arrangement
    runs: Sequence[pa.Table]
    delta: pa.Table

    @property
    def names(self) -> list[str]:
        """The columns of a stored row."""
        return [*self.arrangement.schema.names, HASH]

    @property
    def time(self) -> str:
        """The column of the times."""
        assert self.arrangement.order is not None
        return self.arrangement.order

    @property
    def partition(self) -> list[str]:
        """The columns of the partition."""
        parts = self.arrangement.key.parts
        assert all(part.is_column for part in parts), "a partition is a tuple of columns"
        return list(dict.fromkeys(part.columns[0] for part in parts))

    def distinct(self, rows: pa.Table) -> tuple[pa.Table, Int64]:
        """Return the distinct partitions and times of rows, sorted like a run, and the number of that of each row."""
        names = list(dict.fromkeys((*self.partition, self.time)))
        rows = rows.select([*names, HASH])
        groups = group_rows(rows, names)
        distinct = take(rows, groups.starts)
        order = order_by_hash_and_value(hashes(distinct), single_chunk(distinct.column(self.time)))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return take(distinct, order), place[groups.group_of]

    def searches(self, times: pa.Table) -> tuple[Search, Search]:
        """Return the searches for times in the relation before and after the epoch."""
        after = search_runs(times, [*self.runs, self.delta], self.arrangement.key, self.arrangement)
        return replace(after, runs=after.runs[:-1], met=after.met[:-1]), after

    def values(self, times: pa.Table) -> Int64:
        """Return the times as numbers."""
        return bounds_of(times.column(self.time))[0]

    def live(self, before: Search, times: pa.Table, number: Int64) -> tuple[Mask, Mask]:
        """Return which times are live before and after the epoch; `number` is the time of each changed row."""
        count = weights(before, self.values(times))
        change = np.bincount(number, weights=diffs(self.delta), minlength=before.size).astype(np.int64)
        return count > 0, count + change > 0

    def neighbours(self, search: Search, times: pa.Table, which: Mask, *, later: bool) -> pa.Table:
        """Return the live times just before or after the selected times."""
        values, exists = nearest(search, self.values(times), later=later, strict=True, known=which)
        rows = np.flatnonzero(exists)
        return replaced(take(times, rows), self.time, as_column(values[rows], times.field(self.time).type))

    def with_times(self, rows: pa.Table, name: str, times: Int64, sign: int) -> pa.Table:
        """Return rows, their diffs times `sign`, with a column of times after their own columns."""
        column = as_column(times, rows.field(self.time).type)
        place = rows.column_names.index(HASH)
        return replaced(rows, DIFF, sign * diffs(rows)).add_column(place, name, column)

"""Sweep: simplify a delta of intervals, so that overlapping parts cancel.

Algebra: a row with interval [start, end) denotes its other columns at every time in the interval. The result denotes
the same at every time, with the fewest intervals: −p[a, ∞) + p[a, b) becomes −p[b, ∞). Rows whose interval is empty, or
has NULL as start or end, denote nothing.
Cost: O(n log n), vectorised.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, diffs, replaced, take, without
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.ordered import as_column, bounds_of


def sweep(table: pa.Table, start: str, end: str) -> pa.Table:
    """Return the equivalent delta; `start` and `end` have one type. Rows equal in all other columns are combined."""
    (begins, begun), (ends, ended) = bounds_of(table.column(start)), bounds_of(table.column(end))
    filled = begins < ends
    for known in (begun, ended):
        if known is not None:
            filled &= known
    if not filled.all():
        rows = np.flatnonzero(filled)
        table, begins, ends = take(table, rows), begins[rows], ends[rows]
    if not table.num_rows:
        return table
    groups = group_rows(table, without(table, [start, end, DIFF]).column_names)
    # Each interval raises the count of its group at its start and lowers it at its end.
    group = np.concatenate([groups.group_of, groups.group_of])
    at = np.concatenate([begins, ends])
    step = np.concatenate([diffs(table), -diffs(table)])
    order = np.lexsort((at, group))
    group, at = group[order], at[order]
    first = np.flatnonzero(np.concatenate([[True], (group[1:] != group[:-1]) | (at[1:] != at[:-1])]))
    step = np.add.reduceat(step[order], first)
    turns = np.flatnonzero(step)
    group, at, level = group[first][turns], at[first][turns], np.cumsum(step[turns])
    # The steps of a group add up to zero, so levels need no reset, and the last step of a group ends its last interval.
    rows = np.flatnonzero(level)
    kept = take(table, groups.starts[group[rows]])
    kept = replaced(kept, start, as_column(at[rows], table.field(start).type))
    kept = replaced(kept, end, as_column(at[rows + 1], table.field(end).type))
    return replaced(kept, DIFF, level[rows])

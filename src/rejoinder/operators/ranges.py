"""Look rows up by key and order value: all within bounds, or those at the latest time up to a given one.

Both give, for each run, the positions of pairs, like `kernels.probe.match`, but of equal keys only: hashes that
collide are sorted out already, since a value of another key must not count as the latest.
Cost: binary searches per needle and run, plus the pairs; a key may have any number of rows outside the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rejoinder.kernels.columns import HASH, Int64, hashes, single_chunk, take
from rejoinder.kernels.hashing import NULL_HASH, Mask
from rejoinder.kernels.neighbours import Same, Search, nearest, search, within
from rejoinder.kernels.ordered import Bound, bounds_of, views
from rejoinder.kernels.probe import keep_equal
from rejoinder.operators.task import key_columns
from rejoinder.plan.physical import Arrangement, Key

Pairs = list[tuple[Int64, Int64]]


def bound(column: pa.ChunkedArray | pa.Array, *, strict: bool) -> Bound:
    """One end of a range for each row of a stream, from a column of the order column's type; NULL bounds nothing in."""
    values, known = bounds_of(column)
    return Bound(values, strict, known)


def match_range(
    stream: pa.Table,
    runs: Sequence[pa.Table],
    key: Key,
    arrangement: Arrangement,
    *,
    low: Bound | None,
    high: Bound | None,
) -> Pairs:
    """Pair each row of a stream, sorted by the hash of its key, with the rows of that key within its bounds.

    Rows of the arrangement without an order value are within no bounds, not even open ones.
    """
    return within(search_runs(stream, runs, key, arrangement), low, high)


def match_nearest(
    stream: pa.Table,
    runs: Sequence[pa.Table],
    key: Key,
    arrangement: Arrangement,
    times: Bound,
    *,
    later: bool = False,
) -> Pairs:
    """Pair each row of a stream, sorted by the hash of its key, with all rows at the latest live time up to its own.

    `later`: at the earliest live time from its own on. If `times` are strict, a row's own time does not count. What
    the runs say of a row over and over again (it came, it went, it came) is listed as often: multiplicities add up.
    """
    found = search_runs(stream, runs, key, arrangement)
    values, answered = nearest(found, times.values, later=later, strict=times.strict, known=times.known)
    here = Bound(values, known=answered)
    return within(found, here, here)


def search_runs(stream: pa.Table, runs: Sequence[pa.Table], key: Key, arrangement: Arrangement) -> Search:
    """Let the rows of a stream, sorted by the hash of its key, meet the runs of an ordered arrangement."""
    assert arrangement.order is not None
    return search(hashes(stream), views(runs, arrangement.order), _same(stream, runs, key, arrangement.key))


def _same(stream: pa.Table, runs: Sequence[pa.Table], here: Key, there: Key) -> Same | None:
    """How to tell whether keys are equal; None if their hashes tell it."""
    if not here.parts:
        return None
    # NULL hashes like some value, and a row that matches nothing is arranged by the hash of its content
    doubtful = hashes(stream) == NULL_HASH if here.exact else np.ones(stream.num_rows, bool)
    nullable = [not here.exact or _may_be_null(run, there) for run in runs]
    if not doubtful.any() and not any(nullable):
        return None
    columns = key_columns(stream, here)
    names = sorted({name for part in there.parts for name in part.columns})

    def same(number: int, left: Int64, right: Int64) -> Mask:
        equal = np.zeros(len(left), bool) if nullable[number] else ~doubtful[left]
        pairs = np.flatnonzero(~equal)
        if len(pairs):
            # a run is large, so its key is worked out for the rows in question only
            rows = take(runs[number].select([*names, HASH]), right[pairs])
            found = [column.take(pa.array(left[pairs])) for column in columns]
            keys = list(zip(found, key_columns(rows, there), strict=True))
            numbers = np.arange(len(pairs))
            kept, _ = keep_equal(numbers, numbers, keys, null_safe=here.null_safe)
            equal[pairs[kept]] = True
        return equal

    return same


def _may_be_null(run: pa.Table, key: Key) -> bool:
    (part,) = key.parts
    return not part.is_column or single_chunk(run.column(part.columns[0])).buffers()[0] is not None

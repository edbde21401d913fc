"""Look up rows by key and order value: all within bounds, or those at the latest time up to a given one.

Both return, for each run, the positions of pairs, like `kernels.arrow.probe.match`, but only of equal keys: colliding
hashes are excluded here, since a value of another key must not count as the latest.
Cost: binary searches per needle and run, plus the pairs; a key may have any number of rows outside the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import HASH, Int64, hashes, single_chunk, take
from rejoinder.kernels.arrow.hashing import NULL_HASH, Mask
from rejoinder.kernels.arrow.nearest import Same, Search, nearest_rows, search, within
from rejoinder.kernels.arrow.ordered import Bound, bounds_of, order_by_hash_and_value, views
from rejoinder.kernels.arrow.probe import keep_equal
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.runtime.task import key_columns

Pairs = list[tuple[Int64, Int64]]


def bound(column: pa.ChunkedArray | pa.Array, *, strict: bool) -> Bound:
    """Return one end of a range for each row; `column` has the type of the order column, and NULL matches nothing."""
    values, known = bounds_of(column)
    return Bound(values, strict, known)


def moved(column: pa.ChunkedArray | pa.Array, by: int) -> Bound:
    """Return one end of a range, inclusive: a time plus `by`, clipped to the range of 64-bit integers."""
    values, known = bounds_of(column)
    ends = np.iinfo(np.int64)
    values = values.clip(ends.min - min(by, 0), ends.max - max(by, 0)) + by
    return Bound(values, strict=False, known=known)


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

    Rows of the arrangement with NULL as order value match no bounds, not even open ones.
    """
    order = _needle_order(stream, low or high)
    search = search_runs(stream, runs, key, arrangement, order)
    low, high = (None if end is None else _reordered(end, order) for end in (low, high))
    return _in_stream_order(within(search, low, high), order)


def match_nearest(
    stream: pa.Table, runs: Sequence[pa.Table], key: Key, arrangement: Arrangement, times: Bound
) -> Pairs:
    """Pair each row of a stream, sorted by the hash of its key, with all rows at the latest live time up to its own.

    If `times` are strict, a row's own time does not count. A row that was inserted and retracted several times is
    paired as often: diffs add up.
    """
    order = _needle_order(stream, times)
    search = search_runs(stream, runs, key, arrangement, order)
    return _in_stream_order(nearest_rows(search, _reordered(times, order), later=False), order)


def search_runs(
    stream: pa.Table, runs: Sequence[pa.Table], key: Key, arrangement: Arrangement, order: Int64 | None = None
) -> Search:
    """Return the search for rows of a stream, sorted by the hash of its key, in the runs of an ordered arrangement.

    `order` permutes rows of equal hash: needle i is row `order[i]`.
    """
    assert arrangement.order is not None
    same = _same(stream, runs, key, arrangement.key)
    if same is None or order is None:
        return search(hashes(stream), views(runs, arrangement.order), same)
    of_rows = same

    def of_needles(number: int, left: Int64, right: Int64) -> Mask:
        return of_rows(number, order[left], right)

    return search(hashes(stream), views(runs, arrangement.order), of_needles)


def _needle_order(stream: pa.Table, times: Bound | None) -> Int64 | None:
    """Return the order of needles by key and time, so that consecutive needles read adjacent rows."""
    if times is None:
        return None
    return order_by_hash_and_value(hashes(stream), pa.array(times.values))


def _reordered(bound: Bound, order: Int64 | None) -> Bound:
    if order is None:
        return bound
    return Bound(bound.values[order], bound.strict, None if bound.known is None else bound.known[order])


def _in_stream_order(pairs: Pairs, order: Int64 | None) -> Pairs:
    return pairs if order is None else [(order[left], right) for left, right in pairs]


def _same(stream: pa.Table, runs: Sequence[pa.Table], here: Key, there: Key) -> Same | None:
    """Return the test for equal keys; None if equal hashes imply equal keys."""
    if not here.parts:
        return None
    # NULL has the hash of some value, and a row that cannot match is arranged by the hash of its content.
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
            # A run is large, so its key is evaluated only for these rows.
            rows = take(runs[number].select([*names, HASH]), right[pairs])
            needles = [column.take(pa.array(left[pairs])) for column in columns]
            keys = list(zip(needles, key_columns(rows, there), strict=True))
            numbers = np.arange(len(pairs))
            kept, _ = keep_equal(numbers, numbers, keys, null_safe=here.null_safe)
            equal[pairs[kept]] = True
        return equal

    return same


def _may_be_null(run: pa.Table, key: Key) -> bool:
    (part,) = key.parts
    return not part.is_column or single_chunk(run.column(part.columns[0])).buffers()[0] is not None

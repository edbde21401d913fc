"""Match sorted hashes against sorted hashes and expand the ranges, without a loop over rows.

Algebra: `match(a, b)` gives every pair (i, j) with a[i] == b[j], once. Cost: min(|a|,|b|) binary searches plus the
pairs found; never a pass over the larger side.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import Int64, UInt64, single_chunk
from rejoinder.kernels.arrow.equality import not_distinct


class TooManyPairsError(Exception):
    """There are more pairs than the caller allows; none was materialized."""


def match(needles: UInt64, haystack: UInt64, *, limit: int | None = None) -> tuple[Int64, Int64]:
    """Return the positions of all pairs with equal hashes; both inputs ascend.

    Raises `TooManyPairsError` beyond `limit`.
    """
    if len(haystack) < len(needles):
        right, left = match(haystack, needles, limit=limit)
        return left, right
    found, low, count = _ranges(needles, haystack)
    if limit is not None and int(count.sum()) > limit:
        raise TooManyPairsError
    return expand(found, low, count)


def count_matches(needles: UInt64, haystack: UInt64) -> Int64:
    """Return the number of positions with an equal hash for each needle, without pairs; both inputs ascend."""
    counts = np.zeros(len(needles), np.int64)
    found, _, count = _ranges(needles, haystack)
    counts[found] = count
    return counts


def _ranges(needles: UInt64, haystack: UInt64) -> tuple[Int64, Int64, Int64]:
    """Return the needles that match, the first position of each, and their count. Most hashes occur only once."""
    if not len(needles) or not len(haystack):
        none = np.zeros(0, np.int64)
        return none, none, none
    low = np.searchsorted(haystack, needles, "left")
    found = np.flatnonzero(haystack[np.minimum(low, len(haystack) - 1)] == needles)
    low, matched = low[found], needles[found]
    count = np.ones(len(found), np.int64)
    several = np.flatnonzero(haystack[np.minimum(low + 1, len(haystack) - 1)] == matched)
    if len(several):
        count[several] = np.searchsorted(haystack, matched[several], "right") - low[several]
    return found, low, count


def expand(left: Int64, low: Int64, count: Int64) -> tuple[Int64, Int64]:
    """Repeat left[i] for each position of [low[i], low[i] + count[i]) and list those positions."""
    total = int(count.sum())
    if total == len(count) and bool(np.all(count == 1)):
        return left, low
    ends = np.cumsum(count)
    right = np.arange(total) + np.repeat(low - (ends - count), count)
    return np.repeat(left, count), right


def keep_equal(
    left: Int64,
    right: Int64,
    keys: Sequence[tuple[pa.ChunkedArray, pa.ChunkedArray]],
    null_safe: Collection[int] = (),
) -> tuple[Int64, Int64]:
    """Return the pairs whose key values are equal; NULL equals nothing, except in the columns of `null_safe`."""
    for number, (needle_column, run_column) in enumerate(keys):
        if not len(left):
            break
        needles = single_chunk(needle_column).take(pa.array(left))
        values = single_chunk(run_column).take(pa.array(right))
        equal = _equal(needles, values)
        if number in null_safe:
            equal |= np.asarray(needles.is_null()) & np.asarray(values.is_null())
        if not equal.all():
            left, right = left[equal], right[equal]
    return left, right


def _equal(left: pa.Array, right: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if pa.types.is_nested(left.type):
        same: np.ndarray[tuple[int], np.dtype[np.bool_]] = not_distinct(left, right) & np.asarray(left.is_valid())
        return same
    if left.type != right.type:
        wider = left.type if left.type.bit_width >= right.type.bit_width else right.type
        left, right = left.cast(wider), right.cast(wider)
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    result: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.asarray(pc.fill_null(equal, False))
    return result

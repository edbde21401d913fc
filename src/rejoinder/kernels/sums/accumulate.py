"""Accumulate a delta into groups: counts, exact sums, smallest and largest values.

Rows are ordered by group, and `starts` has the first row of each group; no group is empty. Algebra: counts and sums are
linear in the diffs, so the value of a group after an epoch is its value before plus that of the delta. Minimum and
maximum are not linear: `extreme_rows` computes them over its input only. Cost: O(n) for counts and sums, O(n log n) for
extremes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import Int64, single_chunk
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.sorting import rank_values
from rejoinder.kernels.sums.digits import (
    Digits,
    decimals_of,
    digits_of_decimals,
    digits_of_integers,
    integers_of,
    normal,
    total,
)


def count_rows(values: pa.Array | None, diffs: Int64, starts: Int64) -> Int64:
    """Return the change of the number of rows of each group; with `values`, of the rows whose value is not NULL."""
    if values is not None and values.null_count:
        diffs = np.where(np.asarray(values.is_valid()), diffs, 0)
    result: Int64 = np.add.reduceat(diffs, starts)
    return result


def sum_exact(before: pa.Array, values: pa.Array, diffs: Int64, starts: Int64) -> tuple[pa.Array, Mask]:
    """Add integers or decimals to the sums before (NULL: none), in their type; also return a mask of overflows."""
    if values.null_count:
        diffs = np.where(np.asarray(values.is_valid()), diffs, 0)
    digits = total(_digits(values), diffs, starts) + _digits(before)
    if pa.types.is_decimal128(before.type):
        return decimals_of(normal(digits), before.type)
    sums, too_large = integers_of(normal(digits))
    return pa.array(sums), too_large


def sum_frames(before: pa.Array, values: pa.Array, frames: tuple[Int64, Int64], origin: Int64) -> tuple[pa.Array, Mask]:
    """Add the integers or decimals from `frames[0]` to `frames[1]` (exclusive) to the sum `before[origin]` of each.

    The result has the type of `before`, in which NULL is zero; the mask says which sums do not fit in it.
    """
    sums = np.concatenate([np.zeros((len(digits := _digits(values)), 1), np.int64), np.cumsum(digits, axis=1)], axis=1)
    totals = sums[:, frames[1]] - sums[:, frames[0]] + _digits(before)[:, origin]
    if pa.types.is_decimal128(before.type):
        return decimals_of(normal(totals), before.type)
    result, too_large = integers_of(normal(totals))
    return pa.array(result), too_large


def _digits(values: pa.Array) -> Digits:
    if pa.types.is_decimal128(values.type):
        return digits_of_decimals(pc.fill_null(values, pa.scalar(0, values.type)) if values.null_count else values)
    filled = pc.fill_null(values, 0) if values.null_count else values
    return digits_of_integers(np.asarray(filled).astype(np.int64))


def float_values(values: pa.Array) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], Mask | None]:
    """Return floats as doubles, with 0 for NULL, and a mask of those that are not NULL; None for all."""
    if not values.null_count:
        return np.asarray(values).astype(np.float64), None
    return np.asarray(pc.fill_null(values, 0.0)).astype(np.float64), np.asarray(values.is_valid())


def extreme_rows(ranks: Int64, group_of: Int64, groups: int, *, largest: bool) -> Int64:
    """Return the first row of each group with the smallest (or largest) rank; −1 if all ranks are 0 (NULL)."""
    rows = np.flatnonzero(ranks)
    order = rows[np.lexsort((-ranks[rows] if largest else ranks[rows], group_of[rows]))]
    result = np.full(groups, -1, np.int64)
    first = np.flatnonzero(np.diff(group_of[order], prepend=-1))
    result[group_of[order[first]]] = order[first]
    return result


def ranked(*columns: pa.Array) -> list[Int64]:
    """Return comparable ranks of the values of columns of one type; NULL has rank 0."""
    ranks = rank_values(single_chunk(pa.chunked_array([*columns])))
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return list(np.split(ranks, cuts))


def taken(values: pa.Array, rows: Int64) -> pa.Array:
    """Return the values of rows; NULL for row −1."""
    return values.take(pa.array(rows, mask=rows < 0))

"""Exact sums of floats per group, stored as lists of digits, so that retractions cancel exactly.

A finite float is an integer times a power of two, so a sum is digits in base 2³² at positions given by the powers. The
state has the digits that are not zero, and the numbers of NaN and infinities. The result is the float nearest to the
exact sum (ties to even), independent of the order of rows and of epochs.
Cost: a few passes over the rows for each class of 32 powers of two that occurs, mostly one or two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rejoinder.kernels.arrow.columns import Int64, UInt64
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.sums.digits import BITS, MASK, Digits, multiplied, normal
from rejoinder.kernels.sums.sparse_counts import packed, unpacked

SMALLEST_POWER = -1126
"""The power of two of the last bit of the last digit: that of the smallest float, as `frexp` returns it."""
_NAN, _PLUS, _MINUS = 100, 101, 102
"""Positions of the counts of values that are not finite; positions of digits are below 70."""

Floats = npt.NDArray[np.float64]


def sum_floats(before: pa.Array, values: Floats, diffs: Int64, starts: Int64) -> tuple[pa.Array, Floats]:
    """Add the values from each start to the next to the sum before (NULL: none). Return the new state, and the sums."""
    old_digits, old_positions, old_groups = unpacked(before)
    old_special = old_positions >= _NAN
    finite = np.isfinite(values)
    parts, place = _digits(np.where(finite, values, 0.0))
    used = np.concatenate([place[(parts != 0).any(axis=0)], old_positions[~old_special], [2]])
    first, end = int(used.min()) - 2, int(used.max()) + 5  # `_nearest` reads two positions below the highest digit
    weighted = multiplied(parts, diffs)
    digits = np.zeros((end - first, len(starts)), weighted.dtype)
    for position in np.unique(used):
        is_here = place == position
        for number, part in enumerate(weighted):
            digits[position - first + number] += np.add.reduceat(np.where(is_here, part, 0), starts)
    digits[old_positions[~old_special] - first, old_groups[~old_special]] += old_digits[~old_special]
    digits = normal(digits)[:-1].astype(np.int64)
    special = np.zeros((3, len(starts)), np.int64)
    for kind, mask in enumerate((np.isnan(values), values == np.inf, values == -np.inf)):
        if mask.any():
            special[kind] = np.add.reduceat(np.where(mask, diffs, 0), starts)
    special[old_positions[old_special] - _NAN, old_groups[old_special]] += old_digits[old_special]
    return _packed(digits, first, special), _shown(_nearest(digits, first), special)


def sum_float_frames(
    before: pa.Array, values: Floats, frames: tuple[Int64, Int64], origin: Int64
) -> tuple[pa.Array, Floats]:
    """Add the values from position `frames[0]` to `frames[1]` (exclusive) to the sum `before[origin]` of each frame.

    Give what to keep, and the sums. `before` may have NULL: none. Cost: the prefix sums of every digit.
    """
    old_digits, old_positions, old_rows = unpacked(before)
    old_special = old_positions >= _NAN
    parts, place = _digits(np.where(np.isfinite(values), values, 0.0))
    used = np.concatenate([place[(parts != 0).any(axis=0)], old_positions[~old_special], [2]])
    first, end = int(used.min()) - 2, int(used.max()) + 5
    kept = np.zeros((end - first, len(before)), np.int64)
    kept[old_positions[~old_special] - first, old_rows[~old_special]] = old_digits[~old_special]
    digits = kept[:, origin]
    for at in np.unique(used):
        here = place == at
        for number, part in enumerate(parts):
            digits[at - first + number] += _between(np.where(here, part, 0), frames)
    digits = normal(digits)[:-1].astype(np.int64)
    kept_special = np.zeros((3, len(before)), np.int64)
    kept_special[old_positions[old_special] - _NAN, old_rows[old_special]] = old_digits[old_special]
    special = kept_special[:, origin]
    for at, found in enumerate((np.isnan(values), values == np.inf, values == -np.inf)):
        if found.any():
            special[at] += _between(found.astype(np.int64), frames)
    return _packed(digits, first, special), _shown(_nearest(digits, first), special)


def _between(values: Int64, frames: tuple[Int64, Int64]) -> Int64:
    """The sums of the values in frames. No sum of fewer than 2³¹ digits leaves 64 bits."""
    sums = np.append(0, np.cumsum(values))
    result: Int64 = sums[frames[1]] - sums[frames[0]]
    return result


def _digits(values: Floats) -> tuple[Digits, Int64]:
    """Return finite floats as three digits each, and the position of the first digit."""
    mantissa, power = np.frexp(values)
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    shift = power.astype(np.int64) - 53 - SMALLEST_POWER
    place, shift = shift // BITS, shift % BITS
    low = (whole & MASK).astype(np.uint64) << shift.astype(np.uint64)
    high = (whole >> BITS) << shift
    middle = (low >> np.uint64(BITS)).astype(np.int64) + (high & MASK)
    parts = np.stack([(low & np.uint64(MASK)).astype(np.int64), middle, high >> BITS])
    return np.where(values < 0, -parts, parts), place


def _nearest(digits: Digits, first: int) -> Floats:
    """Return the float nearest to normal digits, the first of which has position `first`."""
    sizes = np.abs(digits).astype(np.uint64)
    filled = sizes != 0
    top = np.maximum(len(sizes) - 1 - np.argmax(filled[::-1], axis=0), 2)
    groups = np.arange(sizes.shape[1])
    one, two, three = (sizes[top - at, groups] for at in range(3))
    rest = (filled & (np.arange(len(sizes))[:, None] < top - 2)).any(axis=0)
    # 64 bits from the highest one on. The last bit is set if any bit follows, so that only real ties round to even.
    spare = np.uint64(BITS) - _bit_length(one)
    cut = np.uint64(BITS) - spare
    word = (((one << np.uint64(BITS)) | two) << spare) | (three >> cut)
    word |= (rest | ((three & ((np.uint64(1) << cut) - np.uint64(1))) != 0)).astype(np.uint64)
    power = (top - 1 + first) * BITS - spare.astype(np.int64) + SMALLEST_POWER
    with np.errstate(over="ignore"):
        result: Floats = np.ldexp(word.astype(np.float64), power)
    return np.where((digits < 0).any(axis=0), -result, result)


def _bit_length(values: UInt64) -> UInt64:
    """Return the bit lengths of numbers below 2³²."""
    return np.frexp(values.astype(np.float64))[1].astype(np.uint64)


def _shown(sums: Floats, special: Int64) -> Floats:
    nan, plus, minus = special != 0
    result = np.where(plus, np.inf, np.where(minus, -np.inf, sums))
    return np.where(nan | (plus & minus), np.nan, result)


def _packed(digits: Digits, first: int, special: Int64) -> pa.Array:
    """Return the digits and counts of each group that are not zero, with their positions."""
    positions = np.concatenate([np.arange(first, first + len(digits)), [_NAN, _PLUS, _MINUS]])
    return packed(np.concatenate([digits, special]), positions)


def integers_of_sums(kept: pa.Array) -> tuple[npt.NDArray[Any], Mask]:
    """Return exact sums as Python integers, in units of 2 to the power of `SMALLEST_POWER`; and a mask of finite ones.

    The sum of a group that is not finite leaves out what is not.
    """
    digits, positions, groups = unpacked(kept)
    is_special = positions >= _NAN
    finite = np.ones(len(kept), bool)
    finite[groups[is_special]] = False
    digits, positions, groups = digits[~is_special], positions[~is_special], groups[~is_special]
    sums = np.zeros(len(kept), object)
    np.add.at(sums, groups, digits.astype(object) << (positions * BITS).astype(object))
    return sums, finite

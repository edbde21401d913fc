"""Exact sums per group: numbers as digits in base 2³², added digit by digit without rounding.

Algebra: `Digits` are a group under addition. A sum does not depend on the order of its terms, and a retraction cancels
exactly: 1e300 + 1 − 1e300 is 1. Overflow is detected only when a sum is read (`integers_of`, `decimals_of`). Cost: one
pass over the rows per digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rejoinder.kernels.arrow.columns import Int64, UInt64
from rejoinder.kernels.arrow.hashing import Mask

Digits = npt.NDArray[Any]
"""Position × group. Normal digits are below 2³² in size and have the sign of the number."""

BITS = 32
MASK = (1 << BITS) - 1
_MANY = 1 << 28


def digits_of_integers(values: Int64) -> Digits:
    """Return 64-bit integers as two digits."""
    return np.stack([values & MASK, values >> BITS])


def digits_of_decimals(values: pa.Array) -> Digits:
    """Return decimals without NULL as the four digits of their unscaled values."""
    halves = np.frombuffer(values.buffers()[1], np.uint64)[2 * values.offset : 2 * (values.offset + len(values))]
    low, high = halves[0::2], halves[1::2].view(np.int64)
    return np.stack([_low(low), _high(low), high & MASK, high >> BITS])


def _low(words: UInt64) -> Int64:
    digits: Int64 = (words & np.uint64(MASK)).astype(np.int64)
    return digits


def _high(words: UInt64) -> Int64:
    digits: Int64 = (words >> np.uint64(BITS)).astype(np.int64)
    return digits


def multiplied(digits: Digits, diffs: Int64) -> Digits:
    """Return digits times diffs, in a type in which they can be summed."""
    if len(diffs) and float(np.abs(diffs.astype(np.float64)).sum()) >= _MANY:  # a sum could leave 64 bits
        digits, diffs = digits.astype(object), diffs.astype(object)
    product: Digits = digits * diffs
    return product


def total(digits: Digits, diffs: Int64, starts: Int64) -> Digits:
    """Sum digits times diffs from each start to the next."""
    return np.stack([np.add.reduceat(row, starts) for row in multiplied(digits, diffs)])


def normal(digits: Digits) -> Digits:
    """Carry over until every digit is below 2³² in size and has the sign of the number: one form for each number.

    The result has one position more; the caller checks whether there is room for it.
    """
    sizes, top = _carried(digits)
    negative = top < 0
    if negative.any():
        sizes, top = _carried(np.where(negative, -digits, digits))
    sizes = np.concatenate([sizes, top[None]])
    return np.where(negative, -sizes, sizes)


def _carried(digits: Digits) -> tuple[Digits, npt.NDArray[Any]]:
    result = np.empty_like(digits)
    carry = np.zeros(digits.shape[1], digits.dtype)
    for position in range(len(digits)):
        value = digits[position] + carry
        result[position] = value & MASK
        carry = value >> BITS
    return result, carry


def integers_of(digits: Digits) -> tuple[Int64, Mask]:
    """Return normal digits as 64-bit integers, and a mask of those that do not fit."""
    (size,), too_large = _words(digits, 1)
    negative = (digits < 0).any(axis=0)
    limit = np.where(negative, np.uint64(1 << 63), np.uint64((1 << 63) - 1))
    too_large |= size > limit
    return np.where(negative, ~size + np.uint64(1), size).view(np.int64), too_large


def decimals_of(digits: Digits, kind: pa.Decimal128Type) -> tuple[pa.Array, Mask]:
    """Return normal digits as decimals of a type, and a mask of those that do not fit."""
    (low, high), too_large = _words(digits, 2)
    limit = 10**kind.precision - 1
    top, bottom = np.uint64(limit >> 64), np.uint64(limit & ((1 << 64) - 1))
    too_large |= (high > top) | ((high == top) & (low > bottom))
    negative = (digits < 0).any(axis=0)
    high = np.where(negative, ~high + (low == 0), high)
    low = np.where(negative, ~low + np.uint64(1), low)
    words = np.ascontiguousarray(np.stack([low, high], axis=1).astype(np.uint64))
    return pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words)]), too_large


def _words(digits: Digits, count: int) -> tuple[list[UInt64], Mask]:
    """Return the absolute values as `count` 64-bit words, and a mask of those that need more."""
    sizes = np.abs(digits)
    too_large: Mask = (sizes[2 * count :] != 0).any(axis=0)
    halves = [sizes[at].astype(np.uint64) for at in range(2 * count)]
    return [halves[at] | (halves[at + 1] << np.uint64(BITS)) for at in range(0, 2 * count, 2)], too_large

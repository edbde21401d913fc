"""Bits of integers per group: how many values have each bit, so that AND, OR and XOR can be retracted.

Algebra: the counts are linear in the diffs. A bit of AND is set if all values have it, of OR if one has it, of XOR if
an odd number has it. Cost: one pass over the values for each of 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import Int64
from rejoinder.kernels.sums.sparse_counts import packed, unpacked

_BITS = 64

Counts = npt.NDArray[Any]
"""Bit × group."""


def count_bits(before: pa.Array, values: pa.Array, diffs: Int64, starts: Int64) -> tuple[pa.Array, Counts]:
    """Add the bits of values that are not NULL to the counts before (NULL: none). Return the new state, and the counts.

    Negative numbers have the bits of their 64-bit complement.
    """
    if values.null_count:
        diffs = np.where(np.asarray(values.is_valid()), diffs, 0)
    numbers = np.asarray(pc.fill_null(values, 0)).astype(np.int64)
    counts = np.stack([np.add.reduceat(((numbers >> bit) & 1) * diffs, starts) for bit in range(_BITS)])
    old, bits, groups = unpacked(before)
    counts[bits, groups] += old
    return packed(counts, np.arange(_BITS)), counts


def bits_in_all(counts: Counts, rows: Int64) -> Int64:
    """The bits that all values of a group have."""
    return _number((counts == rows) & (rows > 0))


def bits_in_any(counts: Counts) -> Int64:
    """The bits that a value of a group has."""
    return _number(counts != 0)


def odd_bits(counts: Counts) -> Int64:
    """The bits that an odd number of values of a group have."""
    return _number(counts % 2 != 0)


def _number(is_set: npt.NDArray[np.bool_]) -> Int64:
    words = np.zeros(is_set.shape[1], np.uint64)
    for bit, mask in enumerate(is_set):
        words |= mask.astype(np.uint64) << np.uint64(bit)
    return words.view(np.int64)

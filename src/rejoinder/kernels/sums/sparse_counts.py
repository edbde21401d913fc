"""Lists of small numbers at positions below 256, of which only those that are not zero are kept, with their positions.

The digits of an exact sum are kept in this way, and the counts of bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import Int64

KEPT = pa.list_(pa.int64())
_POSITION_BITS = 8
_POSITION = (1 << _POSITION_BITS) - 1


def packed(numbers: npt.NDArray[Any], positions: Int64) -> pa.Array:
    """Return the numbers (position × group) of each group that are not zero, with their positions."""
    both = numbers.T
    groups, at = np.nonzero(both)
    entries = (both[groups, at] << _POSITION_BITS) | positions[at]
    offsets = np.searchsorted(groups, np.arange(len(both) + 1))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(entries, pa.int64()))


def unpacked(kept: pa.Array) -> tuple[Int64, Int64, Int64]:
    """Return numbers, positions and groups."""
    entries = np.asarray(kept.flatten())
    return entries >> _POSITION_BITS, entries & _POSITION, np.asarray(pc.list_parent_indices(kept))

"""Byte strings as sort keys: compared like `memcmp`, many at once, without a Python object per key.

Keys are read where they lie, so that a look into a mapped run touches the keys that are compared and no others. A
comparison takes eight bytes of each key at a time, as one big-endian integer, and goes on with the pairs that are equal
so far. Cost: one pass over the pairs for each eight bytes of their common prefix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rejoinder.kernels.arrow.columns import Int64

_WORD = 8
_PLACES = np.arange(_WORD)


@dataclass(frozen=True, eq=False)
class ByteKeys:
    """Keys as places in a buffer: key i is `data[starts[i]:ends[i]]`."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.signedinteger]
    ends: npt.NDArray[np.signedinteger]

    @classmethod
    def of(cls, array: pa.Array) -> ByteKeys:
        """View a binary column without NULL, without a copy."""
        _, offsets, data = array.buffers()
        width = np.int64 if pa.types.is_large_binary(array.type) else np.int32
        if offsets is None or not len(array):
            none = np.zeros(0, width)
            return cls(np.zeros(0, np.uint8), none, none)
        places = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
        content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return cls(content, places[:-1], places[1:])

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, rows: Int64 | slice) -> ByteKeys:
        return ByteKeys(self.data, self.starts[rows], self.ends[rows])

    def key(self, row: int) -> bytes:
        """One key as an object: for a few keys, Python compares these faster than NumPy compares words."""
        return self.data[self.starts[row] : self.ends[row]].tobytes()

    def __lt__(self, other: ByteKeys) -> npt.NDArray[np.bool_]:
        return self.signs(other) < 0

    def __le__(self, other: ByteKeys) -> npt.NDArray[np.bool_]:
        return self.signs(other) <= 0

    def signs(self, other: ByteKeys) -> npt.NDArray[np.int8]:
        """−1 where a key is before the other one in its place, 0 where they are equal, 1 where it is after."""
        result = np.zeros(len(self), np.int8)
        active = np.arange(len(self))
        left, right = self, other
        depth = 0
        while len(active):
            ours, theirs = left._words(depth), right._words(depth)
            result[active] = (ours > theirs).astype(np.int8) - (ours < theirs)
            depth += _WORD
            equal = np.flatnonzero(ours == theirs)
            lengths = left.ends[equal] - left.starts[equal], right.ends[equal] - right.starts[equal]
            # Where one is a prefix of the other and the rest is zeros, the shorter one comes first.
            ended = (lengths[0] <= depth) & (lengths[1] <= depth)
            shorter = np.sign(lengths[0] - lengths[1]).astype(np.int8)
            result[active[equal[ended]]] = shorter[ended]
            rest = equal[~ended]
            active, left, right = active[rest], left[rest], right[rest]
        return result

    def _words(self, depth: int) -> npt.NDArray[np.uint64]:
        """Eight bytes of each key from `depth` on, zeros after its end, as integers that compare like the bytes."""
        places = (self.starts.astype(np.int64) + depth)[:, None] + _PLACES
        inside = places < self.ends[:, None]
        words = np.where(inside, self.data[np.where(inside, places, 0)] if len(self.data) else 0, 0).astype(np.uint8)
        return np.ascontiguousarray(words).view(">u8")[:, 0].astype(np.uint64)

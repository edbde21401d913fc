"""Byte strings as sort keys: compared like `memcmp`, many at once, without a Python object per key.

Keys are read where they lie, so that a look into a mapped run touches the keys that are compared and no others. A
comparison takes eight bytes of each key at a time, as one big-endian integer, and goes on with the pairs that are equal
so far. Cost: one pass over the pairs for each eight bytes of their common prefix. Ranks, and searches for many keys,
sort or search such integers instead of comparing pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rejoinder.kernels.arrow.columns import Int64, UInt64

_WORD = 8
_LEADING = np.array([((1 << 8 * count) - 1) << 8 * (_WORD - count) for count in range(_WORD + 1)], np.uint64)
"""Masks of the first 0 to 8 bytes of a word."""
MANY_KEYS = 64
ROWS_PER_KEY = 64
"""Up to so many rows of a range for each of its keys, a pass over them costs less than a binary search."""


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
            ours, theirs = left.words(depth), right.words(depth)
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

    def words(self, depth: int) -> UInt64:
        """Eight bytes of each key from `depth` on, zeros after its end, as integers that compare like the bytes."""
        data = self.data if len(self.data) >= _WORD else np.pad(self.data, (0, _WORD))
        everywhere: npt.NDArray[np.uint64] = np.ndarray((len(data) - _WORD + 1,), ">u8", data.data, strides=(1,))
        places = self.starts.astype(np.int64) + depth
        present = self.ends - places
        if int(present.min(initial=_WORD)) >= _WORD:
            whole: UInt64 = everywhere[places].astype(np.uint64)
            return whole
        present = np.maximum(np.minimum(present, _WORD), 0)
        # Where fewer than eight bytes of the buffer are left, its last word is read and shifted.
        read = np.minimum(places, len(everywhere) - 1)
        missing = np.minimum(places - read, _WORD - 1).astype(np.uint64)
        result: UInt64 = (everywhere[read].astype(np.uint64) << (missing * np.uint64(_WORD))) & _LEADING[present]
        return result


def narrow(straws: ByteKeys, wanted: ByteKeys, low: Int64, high: Int64) -> tuple[Int64, Int64]:
    """Narrow a range of ascending `straws` for each wanted key; the insertion points of the key stay in its range.

    A range that many adjacent keys share is narrowed to the rows that equal the key in one word after another: one pass
    over its rows costs less than a pass over the keys for each step of a binary search. Other ranges do not change.
    """
    low, high = low.copy(), high.copy()
    pending = [(keys, 0) for keys in _shared(np.arange(len(low)), low, high)]
    while pending:
        keys, depth = pending.pop()
        first, end = int(low[keys[0]]), int(high[keys[0]])
        ends = straws[np.array([first, end - 1])]
        if int((ends.ends - ends.starts).max()) <= depth:
            continue
        ours = wanted[keys].words(depth)
        least, greatest = ends.words(depth)
        # Keys between the first and the last straw have the prefix of both: one word stands for all rows then.
        theirs = straws[first:end].words(depth) if least < greatest else np.repeat(least, end - first)
        low[keys] = first + np.searchsorted(theirs, ours, "left")
        high[keys] = first + np.searchsorted(theirs, ours, "right")
        pending += [(group, depth + _WORD) for group in _shared(keys, low, high)]
    return low, high


def _shared(keys: Int64, low: Int64, high: Int64) -> list[Int64]:
    """Group adjacent keys that share a range, where a group is large enough for a pass over the rows of its range."""
    first, end = low[keys], high[keys]
    starts = np.flatnonzero((np.diff(first, prepend=-1) != 0) | (np.diff(end, prepend=-1) != 0))
    counts = np.diff(np.append(starts, len(keys)))
    rows = (end - first)[starts]
    large = (counts >= MANY_KEYS) & (rows > 1) & (rows <= ROWS_PER_KEY * counts)
    return [keys[start : start + count] for start, count in zip(starts[large], counts[large], strict=True)]


def ranks_of(keys: ByteKeys) -> Int64:
    """Rank keys from 1; equal keys rank equal.

    Sorts by the first word after the common prefix, then the keys that are equal so far by their next word.
    """
    lengths = (keys.ends - keys.starts).astype(np.int64)
    order = np.arange(len(keys))
    differs = order == 0  # from the key before, in this order
    tied = order.copy()
    depth = 0
    while len(tied):
        rows = order[tied]
        is_end = bool((lengths[rows] <= depth).all())  # where the rest is zeros, the shorter one comes first
        words = lengths[rows].astype(np.uint64) if is_end else keys[rows].words(depth)
        group = np.cumsum(differs)
        common = 0 if is_end else _common_bytes(words)
        if common == _WORD or (common and group[-1] == 1):  # the first word then tells more keys apart
            depth += common
            continue
        depth += _WORD
        sequence = np.argsort(words)
        if group[-1] > 1:
            sequence = _by_group(group[tied], sequence)
        order[tied], words = rows[sequence], words[sequence]
        differs[tied[1:]] |= words[1:] != words[:-1]
        same = ~differs[tied]
        tied = tied[:0] if is_end else tied[same | np.append(same[1:], False)]
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.cumsum(differs)
    return ranks


def _common_bytes(words: UInt64) -> int:
    """Count the leading bytes that all words share."""
    different = int(np.bitwise_or.reduce(words ^ words[0]))
    return _WORD - -(-different.bit_length() // 8)


def _by_group(group: Int64, sequence: Int64) -> Int64:
    """Sort a sequence of rows by the ascending groups of the rows, stable."""
    bits = max(1, (len(sequence) - 1).bit_length())
    packed = (group[sequence] << bits) | np.arange(len(sequence))
    packed.sort()
    result: Int64 = sequence[packed & ((1 << bits) - 1)]
    return result

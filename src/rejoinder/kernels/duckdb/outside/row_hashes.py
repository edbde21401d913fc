"""Spark's hash functions, Murmur3 and xxHash64, of many values at once.

A value is an INT, a BIGINT, a FLOAT, a DOUBLE or bytes; other types are cast to one of these. All rows advance
together, bytes by one word per step. Cost: the longest value in words, times the rows that are that long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

Words = Any
"""An array of NumPy."""
_U32, _U64 = np.uint32, np.uint64
_P1, _P2, _P3, _P4, _P5 = (
    _U64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def murmur3(values: pa.ChunkedArray, seeds: pa.ChunkedArray) -> pa.Array:
    """The 32-bit hash of each value, as an INT, from a seed per row. The caller keeps NULLs out of both."""
    array, state = values.combine_chunks(), np.asarray(seeds.combine_chunks().fill_null(0)).astype(np.int32).view(_U32)
    with np.errstate(over="ignore"):
        if pa.types.is_binary(array.type):
            state = state.copy()
            data, starts, sizes = _bytes(array)
            for rows, words in _words(data, starts, sizes // 4 * 4, 4):
                state[rows] = _mix32(state[rows], words)
            for rows, tail in _words(data, starts + sizes // 4 * 4, sizes % 4, 1):
                state[rows] = _mix32(state[rows], tail.view(np.int8).astype(np.int32).view(_U32))
            result = _finish32(state, sizes.astype(_U32))
        else:
            words, width = _fixed(array)
            state = _mix32(state, (words & _U64(0xFFFFFFFF)).astype(_U32))
            if width == 8:
                state = _mix32(state, (words >> _U64(32)).astype(_U32))
            result = _finish32(state, _U32(width))
    return pa.array(result.view(np.int32), mask=np.asarray(array.is_null()))


def xxhash64(values: pa.ChunkedArray, seeds: pa.ChunkedArray) -> pa.Array:
    """The 64-bit hash of each value, as a BIGINT, from a seed per row. The caller keeps NULLs out of both."""
    array, seed = values.combine_chunks(), np.asarray(seeds.combine_chunks().fill_null(0)).astype(np.int64).view(_U64)
    with np.errstate(over="ignore"):
        if pa.types.is_binary(array.type):
            state = _xx_bytes(array, seed)
        else:
            words, width = _fixed(array)
            state = seed + _P5 + _U64(width)
            if width == 8:
                state = _xx_long(state, words)
            else:
                state = _xx_int(state, words & _U64(0xFFFFFFFF))
        state ^= state >> _U64(33)
        state *= _P2
        state ^= state >> _U64(29)
        state *= _P3
        state ^= state >> _U64(32)
    return pa.array(state.view(np.int64), mask=np.asarray(array.is_null()))


def _xx_bytes(array: pa.Array, seed: Words) -> Words:
    data, starts, sizes = _bytes(array)
    state = seed + _P5
    is_long = sizes >= 32
    if is_long.any():
        lanes = [seed + _P1 + _P2, seed + _P2, seed.copy(), seed - _P1]
        for step, (rows, words) in enumerate(_words(data, starts, np.where(is_long, sizes // 32 * 32, 0), 8)):
            lane = lanes[step % 4]
            lane[rows] = _rotated(lane[rows] + words * _P2, 31) * _P1
        merged = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
        for lane in lanes:
            merged = (merged ^ (_rotated(lane * _P2, 31) * _P1)) * _P1 + _P4
        state = np.where(is_long, merged, state)
    state = state + sizes.astype(_U64)
    done = sizes // 32 * 32
    for rows, words in _words(data, starts + done, (sizes - done) // 8 * 8, 8):
        state[rows] = _xx_long(state[rows], words)
    done = sizes // 8 * 8
    for rows, words in _words(data, starts + done, (sizes - done) // 4 * 4, 4):
        state[rows] = _xx_int(state[rows], words.astype(_U64))
    done = sizes // 4 * 4
    for rows, words in _words(data, starts + done, sizes - done, 1):
        state[rows] = _rotated(state[rows] ^ (words.astype(_U64) * _P5), 11) * _P1
    return state


def _xx_long(state: Words, words: Words) -> Words:
    return _rotated(state ^ (_rotated(words * _P2, 31) * _P1), 27) * _P1 + _P4


def _xx_int(state: Words, words: Words) -> Words:
    return _rotated(state ^ (words * _P1), 23) * _P2 + _P3


def _rotated(words: Words, bits: int) -> Words:
    return (words << _U64(bits)) | (words >> _U64(64 - bits))


def _mix32(state: Words, words: Words) -> Words:
    words = words * _U32(0xCC9E2D51)
    words = (words << _U32(15)) | (words >> _U32(17))
    state = state ^ (words * _U32(0x1B873593))
    state = (state << _U32(13)) | (state >> _U32(19))
    return state * _U32(5) + _U32(0xE6546B64)


def _finish32(state: Words, sizes: Any) -> Words:
    state = state ^ sizes
    state = (state ^ (state >> _U32(16))) * _U32(0x85EBCA6B)
    state = (state ^ (state >> _U32(13))) * _U32(0xC2B2AE35)
    return state ^ (state >> _U32(16))


def _fixed(array: pa.Array) -> tuple[Words, int]:
    """The bits of numbers as 64-bit words, and their width in bytes. Zero has one sign, and NaN one form."""
    values = np.asarray(array.fill_null(0))
    width = int(array.type.bit_width // 8)
    if pa.types.is_floating(array.type):
        values = np.where(np.isnan(values), np.nan, values + 0).astype(values.dtype)
        values = values.view(np.int32 if width == 4 else np.int64)
    return values.astype(np.int64).view(_U64), width


def _bytes(array: pa.Array) -> tuple[Words, Words, Words]:
    """All bytes, and where each value starts and how long it is."""
    wide = array.cast(pa.large_binary())
    offsets = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset : wide.offset + len(wide) + 1]
    return np.frombuffer(wide.buffers()[2] or b"", np.uint8), offsets[:-1], np.diff(offsets)


def _words(data: Words, starts: Words, sizes: Words, width: int) -> Iterator[tuple[Words, Words]]:
    """Step by step, the rows that have another word of so many bytes, and these words, little-endian."""
    kind = {1: np.uint8, 4: np.uint32, 8: np.uint64}[width]
    rows = np.argsort(-sizes, kind="stable")
    ordered = -sizes[rows]
    for step in range(0, int(sizes.max(initial=0)), width):
        active = rows[: int(np.searchsorted(ordered, -step, side="left"))]
        places = (starts[active] + step)[:, None] + np.arange(width)
        yield active, np.ascontiguousarray(data[places]).view(kind)[:, 0]

"""Hash columns to 64 bits. The function must never change: hashes are part of the state on disk.

Algebra: `hash_rows` is a function of the values only. Values that SQL calls equal hash alike whatever their
width (INT and BIGINT, FLOAT and DOUBLE, 0.0 and -0.0, every NaN). A single integer, date, timestamp or boolean
column is hashed by a bijection, so that equal hashes mean equal keys (`is_exact`).
Cost: a fixed number of NumPy passes per column; strings take one pass per 8-byte word. No loop over rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rejoinder.kernels.arrow.columns import UInt64, single_chunk

_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)
NULL_HASH = np.uint64(0x6A09E667F3BCC909)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)

_SHORT = 512
"""The bytes of a value whose words are taken one after the other."""
_POSITIONS = np.arange(1, _SHORT // 8 + 1, dtype=np.uint64) * _STEP
"""What the first words of a value are scrambled with."""
_BLOCK = 1 << 14
"""Rows at a time, so that their words stay in the cache of a core."""

Mask = npt.NDArray[np.bool_]


def mix(x: UInt64) -> UInt64:
    """Scramble 64 bits: a bijection (the finaliser of splitmix64)."""
    x = x ^ (x >> _S30)
    x *= _M1
    x ^= x >> _S27
    x *= _M2
    x ^= x >> _S31
    return x


def is_exact(types: Sequence[pa.DataType]) -> bool:
    """Whether equal key hashes imply equal keys, so that a probe need not compare values."""
    return len(types) == 1 and (
        pa.types.is_integer(types[0])
        or pa.types.is_boolean(types[0])
        or pa.types.is_date32(types[0])
        or pa.types.is_timestamp(types[0])
    )


def hash_rows(columns: Sequence[pa.ChunkedArray | pa.Array], rows: int) -> UInt64:
    """Return the hash of each row; NULL is a value like any other. Without columns all rows have the same hash."""
    if not columns:
        return np.zeros(rows, np.uint64)
    result = _hash_nullable(single_chunk(columns[0]))
    for column in columns[1:]:
        result = mix(result + _STEP) ^ _hash_nullable(single_chunk(column))
        result = mix(result)
    return result


def _hash_nullable(array: pa.Array) -> UInt64:
    result = _hash_values(array)
    if array.null_count:
        result = np.where(np.asarray(array.is_valid()), result, NULL_HASH)
    return result


def _hash_values(array: pa.Array) -> UInt64:
    kind = array.type
    if len(array) == 0:  # buffers of an empty array may have any size, for example those of DuckDB's empty lists
        return np.zeros(0, np.uint64)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        return mix(_as_integers(array))
    if pa.types.is_floating(kind):
        return mix(_as_float_bits(array))
    if pa.types.is_decimal128(kind):
        halves = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
        return mix(mix(halves[0::2]) ^ (halves[1::2] * _STEP))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _hash_bytes(array)
    if pa.types.is_struct(kind):
        return hash_rows([array.field(i) for i in range(kind.num_fields)], len(array))
    if pa.types.is_map(kind):
        return _hash_lists(array.offsets, hash_rows([array.keys, array.items], len(array.keys)))
    if pa.types.is_list(kind):
        return _hash_lists(array.offsets, _hash_nullable(array.values))
    if pa.types.is_null(kind):
        return np.full(len(array), NULL_HASH)
    raise TypeError(f"no hash is defined for {kind}")


def _as_integers(array: pa.Array) -> UInt64:
    kind = array.type
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_date32(kind):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int64())
    values = np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]
    return values.astype(np.int64, copy=False).view(np.uint64)


def _as_float_bits(array: pa.Array) -> UInt64:
    values = np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]
    with np.errstate(invalid="ignore"):  # the buffer may contain anything where a value is NULL
        doubles = values.astype(np.float64) + 0.0  # turns -0.0 into 0.0
    doubles[np.isnan(doubles)] = np.nan
    return doubles.view(np.uint64)


def _hash_bytes(array: pa.Array) -> UInt64:
    """Sum the scrambled 8-byte words of each value, each word scrambled with its position."""
    rows = len(array)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + rows + 1].astype(np.int64)
    start, length = offsets[:-1], offsets[1:] - offsets[:-1]
    if array.null_count:
        length = np.where(np.asarray(array.is_valid()), length, 0)
    data = array.buffers()[2]
    used = (
        np.frombuffer(data, np.uint8, int(offsets[-1])) if data is not None and offsets[-1] else np.zeros(0, np.uint8)
    )
    padded = np.concatenate([used[offsets[0] :], np.zeros(8, np.uint8)])
    words = np.ndarray((len(padded) - 7,), np.dtype("<u8"), padded.data, 0, (1,))
    start = start - offsets[0]
    total = length.astype(np.uint64) * _STEP
    long = np.flatnonzero(length > _SHORT)
    short = length
    if len(long):
        total[long] += _long_word_sums(words, start[long], length[long])
        short = np.where(length > _SHORT, 0, length)
    for first in range(0, rows, _BLOCK):
        block = slice(first, first + _BLOCK)
        total[block] += _word_sums(words, start[block], short[block])
    total[length == 0] += mix(np.full(1, _STEP))[0]
    return mix(total)


def _word_sums(words: UInt64, start: npt.NDArray[np.int64], length: npt.NDArray[np.int64]) -> UInt64:
    """Sum up the scrambled words of short values: one pass over the rows per word, so nothing is expanded."""
    sums = np.zeros(len(start), np.uint64)
    shortest, longest = int(length.min()), int(length.max())
    for at, number in zip(range(0, longest, 8), _POSITIONS, strict=False):
        if shortest >= at + 8:
            sums += mix(words[start + at] ^ number)
        else:
            rows = np.flatnonzero(length > at)
            sums[rows] += mix(_masked(words[start[rows] + at], length[rows] - at) ^ number)
    return sums


def _long_word_sums(words: UInt64, start: npt.NDArray[np.int64], length: npt.NDArray[np.int64]) -> UInt64:
    """Sum up the scrambled words of values of any length, except empty ones; all words are listed first."""
    count = (length + 7) >> 3
    owner = np.repeat(np.arange(len(count)), count)
    position = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    values = _masked(words[start[owner] + (position << 3)], length[owner] - (position << 3))
    scrambled = mix(values ^ ((position + 1).astype(np.uint64) * _STEP))
    sums: UInt64 = np.add.reduceat(scrambled, np.cumsum(count) - count)
    return sums


def _masked(words: UInt64, available: npt.NDArray[np.int64]) -> UInt64:
    """Keep the low `available` bytes (all of them from 8 up) of each word."""
    bits = np.minimum(available, 8).astype(np.uint64) * np.uint64(8)
    mask = np.where(available >= 8, ~np.uint64(0), (np.uint64(1) << (bits & np.uint64(63))) - np.uint64(1))
    result: UInt64 = words & mask
    return result


def _hash_lists(offsets: pa.Array, elements: UInt64) -> UInt64:
    bounds = np.asarray(offsets).astype(np.int64)
    start, count = bounds[:-1], bounds[1:] - bounds[:-1]
    owner = np.repeat(np.arange(len(count)), count)
    position = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    scrambled = mix(elements[start[owner] + position] ^ ((position + 1).astype(np.uint64) * _STEP))
    total = count.astype(np.uint64) * _STEP
    filled = count > 0
    if len(scrambled):
        total[filled] += np.add.reduceat(scrambled, (np.cumsum(count) - count)[filled])
    return mix(total)

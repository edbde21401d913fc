"""Arithmetic on decimals whose exact result may have more than 38 digits, rounded as Spark rounds it.

DuckDB's integers have at most 38 digits. Here values are unbounded integers in NumPy arrays of objects. The exact
result is rounded once to the scale of the result, half away from zero. (Spark first truncates products and quotients
after 39 digits, which makes no difference.) A result of more than 38 digits is NULL, and the caller raises the error.

Cost: some 100 ns per row and operation. Only types that need it use this module (`wide_arithmetic`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FUNCTION = "wide_decimal"
"""The name by which DuckDB calls `calculate`."""
RESULT = pa.decimal128(38, 0)
_DIGITS = 39
_LIMIT = 10**38
Integers = npt.NDArray[Any]


def calculate(sign: pa.ChunkedArray, left: pa.ChunkedArray, right: pa.ChunkedArray, scale: pa.ChunkedArray) -> pa.Array:
    """Return the unscaled values of `left sign right` as a decimal with `scale`; `sign` and `scale` are constant.

    The result is NULL if it does not fit, or if the divisor is zero.
    """
    if not len(left):
        return pa.array([], RESULT)
    a, b, known = _integers(left), _integers(right), ~(_nulls(left) | _nulls(right))
    a, b = np.where(known, a, 0), np.where(known, b, 0)
    result, fits = _CALCULATIONS[sign[0].as_py()](a, left.type.scale, b, right.type.scale, scale[0].as_py())
    fits = fits & known & (np.abs(result) < _LIMIT).astype(bool)
    return pa.array(np.where(fits, result, 0), RESULT, mask=~fits)


def _added(a: Integers, a_scale: int, b: Integers, b_scale: int, scale: int) -> tuple[Integers, Integers]:
    exact = max(a_scale, b_scale)
    total = a * 10 ** (exact - a_scale) + b * 10 ** (exact - b_scale)
    return _rescaled(total, exact, scale), np.ones(len(a), bool)


def _subtracted(a: Integers, a_scale: int, b: Integers, b_scale: int, scale: int) -> tuple[Integers, Integers]:
    return _added(a, a_scale, -b, b_scale, scale)


def _multiplied(a: Integers, a_scale: int, b: Integers, b_scale: int, scale: int) -> tuple[Integers, Integers]:
    return _rescaled(a * b, a_scale + b_scale, scale), np.ones(len(a), bool)


def _divided(a: Integers, a_scale: int, b: Integers, b_scale: int, scale: int) -> tuple[Integers, Integers]:
    by = np.where(b == 0, 1, np.abs(b))
    shift = scale - a_scale + b_scale
    sizes, by = np.abs(a) * 10 ** max(shift, 0), by * 10 ** max(-shift, 0)
    quotient = (2 * sizes + by) // (2 * by)
    return np.where((a < 0) == (b < 0), quotient, -quotient), (b != 0).astype(bool)


def _rest(a: Integers, a_scale: int, b: Integers, b_scale: int, scale: int) -> tuple[Integers, Integers]:
    exact = max(a_scale, b_scale)
    sizes, by = np.abs(a) * 10 ** (exact - a_scale), np.where(b == 0, 1, np.abs(b)) * 10 ** (exact - b_scale)
    rest = np.where(a < 0, -(sizes % by), sizes % by)
    # Java refuses an integer quotient that has more digits than the context precision, unless the rest are zeros.
    quotient = sizes // by
    fits = (b != 0).astype(bool) & (quotient % _units(quotient) == 0).astype(bool)
    return _rescaled(rest, exact, scale), fits


_CALCULATIONS = {"+": _added, "-": _subtracted, "*": _multiplied, "/": _divided, "%": _rest}


def _units(values: Integers) -> Integers:
    """Return the unit of the 39th digit of each value; 1 if it has no more than 39 digits."""
    sizes, dropped = np.abs(values), np.zeros(len(values), np.int64)
    for digits in range(_DIGITS, len(str(sizes.max()))):
        dropped += (sizes >= 10**digits).astype(np.int64)
    units: Integers = np.array([10**count for count in range(int(dropped.max()) + 1)], object)[dropped]
    return units


def _rescaled(values: Integers, present: int, scale: int) -> Integers:
    """Change the number of digits after the point; round half away from zero."""
    if scale >= present:
        larger: Integers = values * 10 ** (scale - present)
        return larger
    unit = 10 ** (present - scale)
    sizes = (np.abs(values) + unit // 2) // unit
    smaller: Integers = np.where(values < 0, -sizes, sizes)
    return smaller


def _integers(values: pa.ChunkedArray) -> Integers:
    """Return the unscaled values as unbounded integers; NULL becomes an arbitrary value."""
    parts = [_chunk_integers(chunk) for chunk in values.chunks if len(chunk)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _chunk_integers(chunk: pa.Array) -> Integers:
    halves = np.frombuffer(chunk.buffers()[1], np.uint64)[2 * chunk.offset : 2 * (chunk.offset + len(chunk))]
    low, high = halves[0::2].astype(object), halves[1::2].view(np.int64).astype(object)
    integers: Integers = high * 2**64 + low
    return integers


def _nulls(values: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return np.asarray(values.is_null(), bool)

"""What is known about a cast from its two types alone, by Spark's ANSI rules."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.expressions.monotone import Step
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument

_DAY = 86_400_000_000
_CERTAIN_DIGITS = 16
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def integer_digits(kind: pa.DataType) -> int:
    """The decimal digits that Spark reserves for an integer type.

    >>> integer_digits(pa.int32())
    10
    """
    return _INTEGER_DIGITS[kind.bit_width]


def cast_can_fail(source: pa.DataType, target: pa.DataType, *, is_try: bool) -> bool:
    """Whether a cast may fail on a row.

    >>> cast_can_fail(pa.int32(), pa.int64(), is_try=False), cast_can_fail(pa.int64(), pa.int32(), is_try=False)
    (False, True)
    """
    if pa.types.is_floating(source) and pa.types.is_decimal(target) and has_uncertain_digits(target):
        return True
    if pa.types.is_date(source) and pa.types.is_timestamp(target):
        return True  # DuckDB's range of timestamps ends before Spark's, with TRY_CAST too
    return not is_try and not is_total(source, target)


def cast_makes_null(source: pa.DataType, target: pa.DataType, *, is_try: bool) -> bool:
    """Whether a cast may be NULL for a value that is not: where TRY_CAST fails, and for a decimal of NaN."""
    return (is_try and not is_total(source, target)) or (pa.types.is_floating(source) and pa.types.is_decimal(target))


def cast_monotone(source: pa.DataType, target: pa.DataType, *, is_try: bool) -> MonotoneArgument | None:
    """The steps from a value to its cast, if the cast is monotone: between integers, and between dates and times."""
    if pa.types.is_integer(source) and pa.types.is_integer(target):
        return None if is_try and not is_total(source, target) else MonotoneArgument()
    if not (_is_datetime(source) and _is_datetime(target)):
        return None
    if pa.types.is_date(target):
        return MonotoneArgument(0, (Step(width=_DAY),))
    return MonotoneArgument(0, (Step(unit=_DAY),)) if pa.types.is_date(source) else MonotoneArgument(0, (Step(),))


def has_uncertain_digits(target: pa.DataType) -> bool:
    """Whether a floating-point number may have too many digits for its decimal to be certain."""
    return bool(target.precision - target.scale > _CERTAIN_DIGITS)


def is_total(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of a type can be cast to another."""
    if pa.types.is_string(source):
        return bool(pa.types.is_binary(target))
    if pa.types.is_integer(target):
        if pa.types.is_timestamp(source):
            return bool(target.bit_width == 64)
        return bool(pa.types.is_boolean(source)) or (
            pa.types.is_integer(source) and source.bit_width <= target.bit_width
        )
    if pa.types.is_decimal(target):
        return not pa.types.is_floating(source) and _fits(source, target)
    if pa.types.is_timestamp(target):
        return bool(pa.types.is_timestamp(source)) or (pa.types.is_integer(source) and source.bit_width < 64)
    return True


def _fits(source: pa.DataType, target: pa.DataType) -> bool:
    digits, scale = (source.precision, source.scale) if pa.types.is_decimal(source) else (integer_digits(source), 0)
    whole, room = digits - scale, target.precision - target.scale
    return bool(whole < room or (whole == room and scale <= target.scale))


def _is_datetime(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))

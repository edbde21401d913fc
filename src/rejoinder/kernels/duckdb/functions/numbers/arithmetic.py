"""Arithmetic: overflow and division by zero fail the row; decimals have the precision that Spark gives them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.functions.parts.wide_arithmetic import MAX_PRECISION, exact, power, wide_product, wide_sum
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing


def _negative(call: Call) -> str:
    name = duckdb_type(call.type)
    return f"(CAST(0 AS {name}) - {{0}})" if pa.types.is_integer(call.type) else f"CAST(-{{0}} AS {name})"


def _sum(sign: str) -> Callable[[Call], str]:
    def rendering(call: Call) -> str:
        if not pa.types.is_decimal(call.type):
            return f"({{0}} {sign} {{1}})"
        left, right = (part.type for part in call.parts)
        if _common_digits(left, right) + 1 > MAX_PRECISION:
            return wide_sum(sign, left, right, call.type)
        operands = [_as(place, part.type, call.type) for place, part in enumerate(call.parts)]
        return f"CAST({operands[0]} {sign} {operands[1]} AS {duckdb_type(call.type)})"

    return rendering


def _product(call: Call) -> str:
    if not pa.types.is_decimal(call.type):
        return "({0} * {1})"
    left, right = (part.type for part in call.parts)
    precision = left.precision + right.precision + 1
    if precision > MAX_PRECISION:
        return wide_product(left, right, call.type)
    # DuckDB multiplies up to 18 digits as 64-bit numbers, and fails if the product is larger.
    operand = left if precision <= 19 else pa.decimal128(max(left.precision, 19), left.scale)
    return f"CAST({_as(0, left, operand)} * {{1}} AS {duckdb_type(call.type)})"


def _quotient(call: Call) -> str:
    if not pa.types.is_decimal(call.type):
        return _unless_zero("{0} / {1}")
    left, right, kind = call.parts[0].type, call.parts[1].type, call.type
    shift = kind.scale - left.scale + right.scale
    if shift < 0 or left.precision + shift > MAX_PRECISION:
        return _unless_zero(exact("/", kind))
    # As whole numbers: DuckDB would divide decimals as DOUBLE.
    is_small = left.precision + shift <= 18 and right.precision <= 18 and kind.precision <= 18
    integer = "BIGINT" if is_small else "HUGEINT"
    whole, with_whole = bound(f"(abs({_unscaled('{0}', left, integer)}) * CAST({10**shift} AS {integer}))")
    by, with_by = bound(f"abs({_unscaled('{1}', right, integer)})")
    rest, with_rest = bound(f"({whole} % {by})")
    # Half is rounded away from zero.
    half = f"{rest} >= {by} - {rest}"
    rounded = with_whole(with_by(with_rest(f"({whole} // {by} + CASE WHEN {half} THEN 1 ELSE 0 END)")))
    sign = "CASE WHEN ({0} < 0) = ({1} < 0) THEN 1 ELSE -1 END"
    unscaled = f"CAST(({rounded}) * {sign} AS DECIMAL({18 if is_small else 38},0))"
    return _unless_zero(f"CAST({unscaled} * {power(-kind.scale)} AS {duckdb_type(kind)})")


def _average(call: Call) -> str:
    """A sum over a count, which is not zero unless the sum is NULL."""
    total, kind = call.parts[0].type, call.type
    if not pa.types.is_decimal(kind):
        return "(CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE))"
    shift = kind.scale - total.scale
    whole, with_whole = bound(f"abs({_unscaled('{0}', total, 'HUGEINT')})")
    by, with_by = bound("CAST({1} AS HUGEINT)")
    rest, with_rest = bound(f"(({whole} % {by}) * CAST({10**shift} AS HUGEINT))")
    half = f"{rest} % {by} >= {by} - {rest} % {by}"
    digits = f"{whole} // {by} * CAST({10**shift} AS HUGEINT) + {rest} // {by} + CASE WHEN {half} THEN 1 ELSE 0 END"
    rounded = with_whole(with_by(with_rest(f"({digits})")))
    unscaled = f"CAST(({rounded}) * CASE WHEN {{0}} < 0 THEN -1 ELSE 1 END AS DECIMAL(38,0))"
    return f"CASE WHEN {{1}} > 0 THEN CAST({unscaled} * {power(-kind.scale)} AS {duckdb_type(kind)}) END"


def _modulo(call: Call) -> str:
    left, right = (part.type for part in call.parts)
    if pa.types.is_decimal(left) and _common_digits(left, right) > MAX_PRECISION:
        return _unless_zero(exact("%", call.type))
    return _unless_zero(_rest(call, *_operands(call)))


def _positive_modulo(call: Call) -> str:
    """A negative rest is increased by the divisor, once."""
    (left, right), name = _operands(call), duckdb_type(call.type)
    rest = _rest(call, left, right)
    # The sum of rest and divisor can leave the type of integers, its rest cannot.
    wide = f"CAST({rest} AS HUGEINT)" if pa.types.is_integer(call.type) else rest
    return _unless_zero(f"CASE WHEN {rest} < 0 THEN CAST(({wide} + {right}) % {right} AS {name}) ELSE {rest} END")


def _operands(call: Call) -> tuple[str, str]:
    """Two decimals as one type."""
    left, right = (part.type for part in call.parts)
    if not pa.types.is_decimal(left):
        return "{0}", "{1}"
    wide = pa.decimal128(_common_digits(left, right), max(left.scale, right.scale))
    return _as(0, left, wide), _as(1, right, wide)


def _rest(call: Call, left: str, right: str) -> str:
    if pa.types.is_decimal(call.type):
        return f"CAST({left} % {right} AS {duckdb_type(call.type)})"
    if pa.types.is_integer(call.type):
        # The smallest integer modulo -1 is 0, and DuckDB calls it an overflow.
        return "CASE WHEN {1} = -1 THEN {0} - {0} ELSE {0} % {1} END"
    return "{0} % {1}"


def _common_digits(left: pa.DataType, right: pa.DataType) -> int:
    """How many digits a decimal needs that holds the values of two others."""
    return int(max(kind.precision - kind.scale for kind in (left, right)) + max(left.scale, right.scale))


def _as(place: int, source: pa.DataType, target: pa.DataType) -> str:
    return f"{{{place}}}" if source == target else f"CAST({{{place}}} AS {duckdb_type(target)})"


def _unscaled(text: str, kind: pa.DataType, integer: str) -> str:
    """The digits of a decimal as a whole number."""
    if kind.scale == 0:
        return f"CAST({text} AS {integer})"
    if kind.precision + kind.scale + 1 <= MAX_PRECISION:
        width = kind.precision if kind.precision + kind.scale + 1 <= 18 else max(19, kind.precision)
        return f"CAST(CAST({text} AS DECIMAL({width},{kind.scale})) * {power(kind.scale)} AS {integer})"
    return f"CAST(replace(CAST({text} AS VARCHAR), '.', '') AS {integer})"


def _unless_zero(quotient: str) -> str:
    """Fail the row if the divisor is zero; NULL divided by zero is NULL."""
    return f"CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN {failing('division by zero')} ELSE {quotient} END"


RENDERINGS: dict[str, Rendering] = {
    "%": _modulo,
    "*": _product,
    "+": _sum("+"),
    "-": _sum("-"),
    "/": _quotient,
    "average": _average,
    "div": _unless_zero("{0} // {1}"),
    "negative": _negative,
    "pmod": _positive_modulo,
}

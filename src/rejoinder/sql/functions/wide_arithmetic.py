"""Decimal arithmetic whose exact type has more than 38 digits: Spark cuts the type, and so do we.

Values that are small enough are calculated by DuckDB, others by `kernels.sums.wide_decimals`. A result that does not
fit the type fails the row, as in Spark's ANSI mode.
"""

from __future__ import annotations

import pyarrow as pa

from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.sums.wide_decimals import FUNCTION
from rejoinder.sql.types.terms import Term, build, failing, quote_text

_MOST = 38


def wide(sign: str, left: Term, right: Term, kind: pa.DataType, *, right_first: bool = False) -> Term:
    """`left sign right` in a type that Spark's rule has cut down to 38 digits."""
    return build(exact(sign, kind), kind, left, right, can_fail=True, right_first=right_first)


def exact(sign: str, kind: pa.DataType) -> str:
    """A template for `{0} sign {1}`, calculated with all digits and rounded to a type once."""
    called = f"{FUNCTION}({quote_text(sign)}, {{0}}, {{1}}, {kind.scale})"
    too_large = failing(f"the result of {sign} does not fit {duckdb_type(kind)}")
    unscaled = f"COALESCE({called}, {too_large})"
    # NULL has no digits: without the guard it would be taken for a result that does not fit
    scaled = f"CAST({unscaled} * {unit(kind.scale)} AS {duckdb_type(kind)})"
    return f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {scaled} END"


def wide_sum(sign: str, left: Term, right: Term, kind: pa.DataType) -> Term:
    """A sum or difference; by DuckDB where both values leave room for a carry."""
    scale = max(left.type.scale, right.type.scale)
    if scale >= _MOST - 1:
        return wide(sign, left, right, kind)
    room, common = _power(_MOST - 1 - scale), f"DECIMAL({_MOST},{scale})"
    small = f"abs({{0}}) < {room} AND abs({{1}}) < {room}"
    quick = f"CAST(CAST({{0}} AS {common}) {sign} CAST({{1}} AS {common}) AS {duckdb_type(kind)})"
    return build(f"CASE WHEN {small} THEN {quick} ELSE {exact(sign, kind)} END", kind, left, right, can_fail=True)


def wide_product(left: Term, right: Term, kind: pa.DataType) -> Term:
    """A product; by DuckDB where it has at most 37 digits."""
    one, two = left.type, right.type
    if one.scale + two.scale > _MOST:
        return wide("*", left, right, kind)
    small = f"abs({{0}}) < {_power(19 - one.scale)} AND abs({{1}}) < {_power(18 - two.scale)}"
    # DuckDB multiplies 18 digits at most as 64-bit numbers, and fails if the product is larger.
    operand = f"CAST({{0}} AS DECIMAL({max(one.precision, 19)},{one.scale}))"
    quick = f"CAST({operand} * {{1}} AS {duckdb_type(kind)})"
    return build(f"CASE WHEN {small} THEN {quick} ELSE {exact('*', kind)} END", kind, left, right, can_fail=True)


def unit(scale: int) -> str:
    """The decimal 10^-scale, by which an unscaled value becomes one with that scale."""
    return "CAST(1 AS DECIMAL(1,0))" if scale == 0 else _power(-scale)


def _power(exponent: int) -> str:
    if exponent < 0:
        return f"CAST('0.{'1'.rjust(-exponent, '0')}' AS DECIMAL({-exponent},{-exponent}))"
    return f"CAST({10**exponent} AS DECIMAL({exponent + 1},0))"

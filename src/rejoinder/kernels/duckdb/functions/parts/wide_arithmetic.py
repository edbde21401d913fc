"""Decimal arithmetic whose exact type has more than 38 digits: Spark cuts the type, and so do we.

Small values are calculated by DuckDB, others by `kernels.sums.wide_decimals`. A result that does not fit the type fails
the row, as in Spark's ANSI mode.
"""

from __future__ import annotations

import pyarrow as pa

from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import failing
from rejoinder.kernels.sums.wide_decimals import FUNCTION

MAX_PRECISION = 38


def exact(sign: str, kind: pa.DataType) -> str:
    """`{0} sign {1}`, calculated with all digits and rounded to a type once."""
    called = f"{FUNCTION}({text_literal(sign)}, {{0}}, {{1}}, {kind.scale})"
    too_large = failing(f"the result of {sign} does not fit {duckdb_type(kind)}")
    unscaled = f"COALESCE({called}, {too_large})"
    # NULL has no digits: without the guard it would be taken for a result that does not fit
    scaled = f"CAST({unscaled} * {power(-kind.scale)} AS {duckdb_type(kind)})"
    return f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {scaled} END"


def wide_sum(sign: str, left: pa.DataType, right: pa.DataType, kind: pa.DataType) -> str:
    """A sum or difference; by DuckDB where both values leave room for a carry."""
    scale = max(left.scale, right.scale)
    if scale >= MAX_PRECISION - 1:
        return exact(sign, kind)
    room, common = power(MAX_PRECISION - 1 - scale), f"DECIMAL({MAX_PRECISION},{scale})"
    is_small = f"abs({{0}}) < {room} AND abs({{1}}) < {room}"
    quick = f"CAST(CAST({{0}} AS {common}) {sign} CAST({{1}} AS {common}) AS {duckdb_type(kind)})"
    return f"CASE WHEN {is_small} THEN {quick} ELSE {exact(sign, kind)} END"


def wide_product(left: pa.DataType, right: pa.DataType, kind: pa.DataType) -> str:
    """A product; by DuckDB where it has at most 37 digits."""
    if left.scale + right.scale > MAX_PRECISION:
        return exact("*", kind)
    is_small = f"abs({{0}}) < {power(19 - left.scale)} AND abs({{1}}) < {power(18 - right.scale)}"
    # DuckDB multiplies up to 18 digits as 64-bit numbers, and fails if the product is larger.
    operand = f"CAST({{0}} AS DECIMAL({max(left.precision, 19)},{left.scale}))"
    quick = f"CAST({operand} * {{1}} AS {duckdb_type(kind)})"
    return f"CASE WHEN {is_small} THEN {quick} ELSE {exact('*', kind)} END"


def power(exponent: int) -> str:
    """The decimal 10^exponent.

    >>> power(2), power(-1)
    ('CAST(100 AS DECIMAL(3,0))', "CAST('0.1' AS DECIMAL(1,1))")
    """
    if exponent < 0:
        return f"CAST('0.{'1'.rjust(-exponent, '0')}' AS DECIMAL({-exponent},{-exponent}))"
    return f"CAST({10**exponent} AS DECIMAL({exponent + 1},0))"

"""Decimals that are read from the text of a number, as Spark reads them."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.functions.templates import bound

_MAX_PRECISION = 38


def decimal_digits(number: str, kind: pa.DataType) -> str:
    """The decimal of a finite DOUBLE, through its shortest text as Spark does; NULL if it does not fit."""
    return read_decimal(f"CAST({number} AS VARCHAR)", kind)


def read_decimal(text: str, kind: pa.DataType) -> str:
    """Read a decimal. DuckDB needs a digit before the point, and DuckDB 1 rounds wrongly after a negative exponent."""
    room = min(kind.precision + (kind.precision == kind.scale), _MAX_PRECISION)
    wider = pa.decimal128(room, kind.scale)
    number, with_number = bound(text)
    found = f"regexp_extract({number}, '^[+-]?0*([0-9]*)[.]?([0-9]*)[eE]-([0-9]+)$', ['a', 'b', 'e'])"
    parts, with_parts = bound(found)
    digits, shift = f"({parts}.a || {parts}.b)", f"least(TRY_CAST({parts}.e AS HUGEINT), 400)"
    point = f"CAST(length({parts}.a) - {shift} AS BIGINT)"
    size = (
        f"CASE WHEN {point} <= 0 THEN '0.' || repeat('0', -{point}) || {digits} "
        f"ELSE left({digits}, {point}) || '.' || substring({digits}, {point} + 1) END"
    )
    sign = f"CASE WHEN starts_with({number}, '-') THEN '-' ELSE '' END"
    tiny = with_parts(f"CASE WHEN {parts}.e = '' THEN {number} ELSE {sign} || {size} END")
    plain = f"CASE WHEN contains({number}, 'e-') OR contains({number}, 'E-') THEN {tiny} ELSE {number} END"
    read = f"TRY_CAST({plain} AS {duckdb_type(wider)})"
    return with_number(read if wider == kind else f"TRY_CAST({read} AS {duckdb_type(kind)})")

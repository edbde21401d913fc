"""Functions on numbers."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.functions.parts.decimal_text import decimal_digits
from rejoinder.kernels.duckdb.functions.templates import Rendering, listed

_LEAST, _MOST = -(2**63), 2**63 - 1


def _cut(verb: str) -> Callable[[Call], str]:
    """FLOOR or CEIL of a decimal or a DOUBLE."""

    def rendering(call: Call) -> str:
        if pa.types.is_decimal(call.type):
            return f"CAST({verb}({{0}}) AS {duckdb_type(call.type)})"
        # Java's conversion stops at the ends of BIGINT, and makes 0 of NaN.
        return (
            f"CASE WHEN isnan({{0}}) THEN 0 WHEN {{0}} >= 9223372036854775807 THEN {_MOST} "
            f"WHEN {{0}} <= -9223372036854775808 THEN {_LEAST} ELSE CAST({verb}({{0}}) AS BIGINT) END"
        )

    return rendering


def _round(call: Call) -> str:
    digits, kind = int(call.operation.options[0]), call.type
    if pa.types.is_decimal(kind):
        return f"CAST({{0}} AS {duckdb_type(kind)})"
    # Spark rounds the shortest text of the number. From 2^52 on there is no fraction to round.
    wide = "CAST({0} AS DOUBLE)"
    rounded = f"CAST(CAST({decimal_digits(wide, pa.decimal128(38, digits))} AS VARCHAR) AS {duckdb_type(kind)})"
    if pa.types.is_float64(kind) and digits < 15:
        # With 15 digits, the way back from the decimal is exact, and needs no text.
        short = f"CAST({decimal_digits(wide, pa.decimal128(18, digits))} AS DOUBLE)"
        rounded = f"CASE WHEN abs({{0}}) < 1e{15 - digits} THEN {short} ELSE {rounded} END"
    kept = "NOT isfinite({0}) OR abs({0}) >= 4503599627370496"
    return f"CASE WHEN {kept} THEN {{0}} ELSE {rounded} END"


RENDERINGS: dict[str, Rendering] = {
    "abs": "abs({0})",
    "bit_count": "CAST(bit_count(CAST({0} AS BIGINT)) AS INTEGER)",
    "ceil": _cut("ceil"),
    "floor": _cut("floor"),
    "greatest": listed("greatest"),
    "isnan": "COALESCE(isnan({0}), FALSE)",
    "least": listed("least"),
    "round": _round,
    "sign": "CASE WHEN {0} = 0 OR isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END",
    "sqrt": "CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END",
}

"""Bits of integers."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing


def _bits(call: Call) -> int:
    return int(call.type.bit_width)


def _wrapped(text: str, call: Call) -> str:
    """A HUGEINT modulo the number of values of an integer type, as Java wraps around."""
    half, all_ = 2 ** (_bits(call) - 1), 2 ** _bits(call)
    whole = f"CAST({all_} AS HUGEINT)"
    return f"CAST((((({text}) + {half}) % {whole}) + {whole}) % {whole} - {half} AS {duckdb_type(call.type)})"


def _left(call: Call) -> str:
    count = f"({{1}} & {_bits(call) - 1})"
    return _wrapped(f"CAST({{0}} AS HUGEINT) * (CAST(1 AS HUGEINT) << CAST({count} AS INTEGER))", call)


def _right(call: Call) -> str:
    return f"({{0}} >> CAST({{1}} & {_bits(call) - 1} AS {duckdb_type(call.type)}))"


def _right_unsigned(call: Call) -> str:
    unsigned = f"(CAST({{0}} AS HUGEINT) + CASE WHEN {{0}} < 0 THEN {2 ** _bits(call)} ELSE 0 END)"
    return _wrapped(f"{unsigned} // (CAST(1 AS HUGEINT) << CAST({{1}} & {_bits(call) - 1} AS INTEGER))", call)


def _bit(call: Call) -> str:
    kind = call.parts[0].type
    bit = f"CAST(({{0}} >> CAST({{1}} AS {duckdb_type(kind)})) & 1 AS TINYINT)"
    outside = failing("the position of a bit is outside of the integer")
    return (
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {{1}} < 0 OR {{1}} >= {kind.bit_width} THEN {outside} ELSE {bit} END"
    )


RENDERINGS: dict[str, Rendering] = {
    "&": "({0} & {1})",
    "^": "xor({0}, {1})",
    "bin": "bin({0})",
    "bit_get": _bit,
    "shiftleft": _left,
    "shiftright": _right,
    "shiftrightunsigned": _right_unsigned,
    "|": "({0} | {1})",
    "~": "(~{0})",
}

"""Results of aggregates, from the values of primitives: moments `{0}` and numbers of values."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing

_POPULATION = "({0} / CAST({1} AS DOUBLE))"
_SAMPLE = "CASE WHEN {1} > 1 THEN {0} / CAST({1} - 1 AS DOUBLE) END"


def _percentile(call: Call) -> str:
    """Between values {0} and {1} of {2} values."""
    place = f"(CAST({{2}} - 1 AS DOUBLE) * CAST({call.operation.options[0]} AS DOUBLE))"
    between = f"(ceil({place}) - {place}) * {{0}} + ({place} - floor({place})) * {{1}}"
    return f"CASE WHEN {{0}} = {{1}} OR ceil({place}) = floor({place}) THEN {{0}} ELSE {between} END"


_BYTES = 4096
"""Of a bitmap."""
_BITS = 8 * _BYTES
_OUTSIDE = failing(f"a position of a bitmap is not between 0 and {_BITS - 1}")
_EMPTY = failing("a sketch has no values")
_ZEROS = f"unhex(repeat('00', {_BYTES}))"


def _bitmap(bits: str, none: str) -> str:
    """The bytes of bits; of no values, a byte repeated."""
    return f"CASE WHEN {{0}} IS NULL THEN unhex(repeat('{none}', {_BYTES})) ELSE CAST({bits} AS BLOB) END"


def _merged(function: str, none: str) -> str:
    padded = f"CAST(array_slice(bitmap || {_ZEROS}, 1, {_BYTES}) AS BIT)"
    return _bitmap(f"list_aggregate(list_transform({{0}}, lambda bitmap: {padded}), '{function}')", none)


# DuckDB counts the bits of a byte from the other end
_PLACES = "list_transform({0}, lambda position: position - position % 8 + 7 - position % 8)"
_CONSTRUCTED = _bitmap(f"list_aggregate({_PLACES}, 'bitstring_agg', 0, {_BITS - 1})", "00")
_IS_OUTSIDE = f"list_min({{0}}) < 0 OR list_max({{0}}) >= {_BITS}"

RENDERINGS: dict[str, Rendering] = {
    "bitmap_and": _merged("bit_and", "FF"),
    "bitmap_construct": f"CASE WHEN {_IS_OUTSIDE} THEN {_OUTSIDE} ELSE {_CONSTRUCTED} END",
    "bitmap_or": _merged("bit_or", "00"),
    "corr": "CASE WHEN {3} > 1 THEN CASE WHEN {1} = 0 OR {2} = 0 THEN NULL ELSE {0} / sqrt({1} * {2}) END END",
    "listagg": "array_to_string({0}, {1})",
    "of_sketch": f"COALESCE({{0}}, {_EMPTY})",
    "percentile": _percentile,
    "product": "list_product({0})",
    "rank_of_sketch": f"CASE WHEN {{1}} = 0 THEN {_EMPTY} ELSE CAST({{0}} AS DOUBLE) / CAST({{1}} AS DOUBLE) END",
    "regr_intercept": "CASE WHEN {1} <> 0 THEN {2} - {0} / {1} * {3} END",
    "regr_r2": "CASE WHEN {2} = 0 THEN NULL WHEN {1} = 0 THEN 1.0::DOUBLE ELSE {0} * {0} / {1} / {2} END",
    "regr_slope": "CASE WHEN {1} <> 0 THEN {0} / {1} END",
    "stddev_pop": f"sqrt({_POPULATION})",
    "stddev_samp": f"sqrt({_SAMPLE})",
    "var_pop": _POPULATION,
    "var_samp": _SAMPLE,
}

"""Arithmetic that gives NULL where the operator would fail."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.functions.templates import Rendering


def _in_range(sign: str) -> Callable[[Call], str]:
    def rendering(call: Call) -> str:
        if not pa.types.is_integer(call.type):
            return f"({{0}} {sign} {{1}})"
        return f"TRY_CAST(CAST({{0}} AS HUGEINT) {sign} CAST({{1}} AS HUGEINT) AS {duckdb_type(call.type)})"

    return rendering


def _rest(call: Call) -> str:
    rest = "{0} % {1}"
    if pa.types.is_integer(call.type):
        # The smallest integer modulo -1 is 0, and DuckDB calls it an overflow.
        rest = "CASE WHEN {1} = -1 THEN {0} - {0} ELSE {0} % {1} END"
    return f"CASE WHEN {{1}} <> 0 THEN {rest} END"


def _bucket(low: str, high: str, value: str) -> str:
    """The bucket between two bounds of which the first is less, all in the direction of `value`."""
    share = f"CAST(trunc(CAST({{3}} AS DOUBLE) * ({value} - {low}) / ({high} - {low})) AS BIGINT) + 1"
    return f"CASE WHEN {value} < {low} THEN 0 WHEN {value} >= {high} THEN {{3}} + 1 ELSE {share} END"


_NO_BUCKETS = (
    "{3} <= 0 OR {3} = 9223372036854775807 OR isnan({0}) OR NOT isfinite({1}) OR NOT isfinite({2}) OR {1} = {2}"
)

RENDERINGS: dict[str, Rendering] = {
    "factorial": "CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial({0}) AS BIGINT) END",
    "nanvl": "CASE WHEN isnan({0}) THEN {1} ELSE {0} END",
    "try_add": _in_range("+"),
    "try_divide": "CASE WHEN {1} <> 0 THEN {0} / {1} END",
    "try_mod": _rest,
    "try_multiply": _in_range("*"),
    "try_subtract": _in_range("-"),
    "width_bucket": f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL OR {{3}} IS NULL OR {_NO_BUCKETS} "
    f"THEN NULL WHEN {{1}} < {{2}} THEN {_bucket('{1}', '{2}', '{0}')} "
    f"ELSE {_bucket('(-{1})', '(-{2})', '(-{0})')} END",
}

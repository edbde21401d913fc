"""Results of aggregates, from the values of primitives: moments `{0}` and numbers of values."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering

_POPULATION = "({0} / CAST({1} AS DOUBLE))"
_SAMPLE = "CASE WHEN {1} > 1 THEN {0} / CAST({1} - 1 AS DOUBLE) END"


def _percentile(call: Call) -> str:
    """Between values {0} and {1} of {2} values."""
    place = f"(CAST({{2}} - 1 AS DOUBLE) * CAST({call.operation.options[0]} AS DOUBLE))"
    between = f"(ceil({place}) - {place}) * {{0}} + ({place} - floor({place})) * {{1}}"
    return f"CASE WHEN {{0}} = {{1}} OR ceil({place}) = floor({place}) THEN {{0}} ELSE {between} END"


RENDERINGS: dict[str, Rendering] = {
    "corr": "CASE WHEN {3} > 1 THEN CASE WHEN {1} = 0 OR {2} = 0 THEN NULL ELSE {0} / sqrt({1} * {2}) END END",
    "listagg": "array_to_string({0}, {1})",
    "percentile": _percentile,
    "regr_intercept": "CASE WHEN {1} <> 0 THEN {2} - {0} / {1} * {3} END",
    "regr_r2": "CASE WHEN {2} = 0 THEN NULL WHEN {1} = 0 THEN 1.0::DOUBLE ELSE {0} * {0} / {1} / {2} END",
    "regr_slope": "CASE WHEN {1} <> 0 THEN {0} / {1} END",
    "stddev_pop": f"sqrt({_POPULATION})",
    "stddev_samp": f"sqrt({_SAMPLE})",
    "var_pop": _POPULATION,
    "var_samp": _SAMPLE,
}

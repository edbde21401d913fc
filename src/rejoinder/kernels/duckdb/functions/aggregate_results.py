"""Results of aggregates, from the values of primitives: moments `{0}` and numbers of values."""

from __future__ import annotations

from rejoinder.kernels.duckdb.functions.templates import Rendering

_POPULATION = "({0} / CAST({1} AS DOUBLE))"
_SAMPLE = "CASE WHEN {1} > 1 THEN {0} / CAST({1} - 1 AS DOUBLE) END"

RENDERINGS: dict[str, Rendering] = {
    "corr": "CASE WHEN {3} > 1 THEN CASE WHEN {1} = 0 OR {2} = 0 THEN NULL ELSE {0} / sqrt({1} * {2}) END END",
    "regr_intercept": "CASE WHEN {1} <> 0 THEN {2} - {0} / {1} * {3} END",
    "regr_r2": "CASE WHEN {2} = 0 THEN NULL WHEN {1} = 0 THEN 1.0::DOUBLE ELSE {0} * {0} / {1} / {2} END",
    "regr_slope": "CASE WHEN {1} <> 0 THEN {0} / {1} END",
    "stddev_pop": f"sqrt({_POPULATION})",
    "stddev_samp": f"sqrt({_SAMPLE})",
    "var_pop": _POPULATION,
    "var_samp": _SAMPLE,
}

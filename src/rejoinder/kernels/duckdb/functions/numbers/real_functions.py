"""Exponential, logarithmic and trigonometric functions, with the formulas that Spark uses."""

from __future__ import annotations

import math

from rejoinder.kernels.duckdb.functions.templates import Rendering

_NAN = "CAST('nan' AS DOUBLE)"


def _finite(body: str) -> str:
    """NaN for an infinite angle, on which DuckDB fails."""
    return f"CASE WHEN isinf({{0}}) THEN {_NAN} ELSE {body} END"


def _logarithm(body: str, least: int = 0) -> str:
    """NULL where there is no logarithm; DuckDB, like Spark, takes NaN for more than all numbers."""
    return f"CASE WHEN {{0}} > {least} THEN {body} END"


RENDERINGS: dict[str, Rendering] = {
    "acos": f"CASE WHEN abs({{0}}) > 1 THEN {_NAN} ELSE acos({{0}}) END",
    "acosh": f"CASE WHEN {{0}} < 1 THEN {_NAN} ELSE acosh({{0}}) END",
    "asin": f"CASE WHEN abs({{0}}) > 1 THEN {_NAN} ELSE asin({{0}}) END",
    "asinh": "asinh({0})",
    "atan": "atan({0})",
    "atan2": "atan2({0} + CAST(0 AS DOUBLE), {1} + CAST(0 AS DOUBLE))",
    "atanh": "(CAST(0.5 AS DOUBLE) * (arrow_log1p({0}) - arrow_log1p(-{0})))",
    "cbrt": "cbrt({0})",
    "cos": _finite("cos({0})"),
    "cosh": "cosh({0})",
    "cot": _finite("CAST(1 AS DOUBLE) / tan({0})"),
    "csc": _finite("CAST(1 AS DOUBLE) / sin({0})"),
    "degrees": f"({{0}} * CAST({180 / math.pi!r} AS DOUBLE))",
    "e": f"CAST({math.e!r} AS DOUBLE)",
    "exp": "exp({0})",
    "expm1": "arrow_expm1({0})",
    "hypot": "arrow_hypot({0}, {1})",
    "ln": _logarithm("ln({0})"),
    "log": "CASE WHEN {0} > 0 AND {1} > 0 THEN ln({1}) / ln({0}) END",
    "log10": _logarithm("log10({0})"),
    "log1p": _logarithm("arrow_log1p({0})", -1),
    "log2": _logarithm("ln({0}) / ln(CAST(2 AS DOUBLE))"),
    "pi": f"CAST({math.pi!r} AS DOUBLE)",
    # Java: one to any power is NaN if that is NaN or infinite.
    "power": f"CASE WHEN abs({{0}}) = 1 AND isinf({{1}}) OR isnan({{1}}) THEN {_NAN} ELSE pow({{0}}, {{1}}) END",
    "radians": f"({{0}} * CAST({math.pi / 180!r} AS DOUBLE))",
    "rint": "round_even({0}, 0)",
    "sec": _finite("CAST(1 AS DOUBLE) / cos({0})"),
    "sin": _finite("sin({0})"),
    "sinh": "sinh({0})",
    "tan": _finite("tan({0})"),
    "tanh": "tanh({0})",
}

"""Comparisons and conditions."""

from __future__ import annotations

from rejoinder.ir.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, listed, places

_SIGNS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


def _in(call: Call) -> str:
    return f"({{0}} IN ({places(len(call.parts) - 1, first=1)}))"


RENDERINGS: dict[str, Rendering] = {
    **{sign: f"({{0}} {sign} {{1}})" for sign in _SIGNS},
    **{test: f"({{0}} {test})" for test in ("IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE")},
    "IN": _in,
    "NOT": "(NOT {0})",
    "coalesce": listed("COALESCE"),
}

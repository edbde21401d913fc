"""Comparisons and conditions."""

from __future__ import annotations

import re

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing, listed, places

SEVERAL_ROWS = "a scalar subquery has more than one row"
"""The beginning of the message with which a row fails whose scalar subquery has several rows."""
_SIGNS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


def _in(call: Call) -> str:
    return f"({{0}} IN ({places(len(call.parts) - 1, first=1)}))"


def _at_most_one(call: Call) -> str:
    """The text of the subquery, which is an option, becomes a part of the message: without signs of a template."""
    text = re.sub(r"[{}]", "", " ".join(str(call.operation.options[0]).split()))
    return f"CASE WHEN {{0}} THEN {failing(f'{SEVERAL_ROWS}: {text}')} ELSE {{1}} END"


RENDERINGS: dict[str, Rendering] = {
    **{sign: f"({{0}} {sign} {{1}})" for sign in _SIGNS},
    **{test: f"({{0}} {test})" for test in ("IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE")},
    "IN": _in,
    "at most one": _at_most_one,
    "NOT": "(NOT {0})",
    "coalesce": listed("COALESCE"),
}

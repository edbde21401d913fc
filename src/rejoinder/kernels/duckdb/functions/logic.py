"""Comparisons and conditions."""

from __future__ import annotations

import re

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.ir.expressions.operators import AT_MOST_ONE
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing, listed, places

SEVERAL_ROWS = "a scalar subquery has more than one row"
"""The beginning of the message with which a row fails whose scalar subquery has several rows."""
_SIGNS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


def _in(call: Call) -> str:
    return f"({{0}} IN ({places(len(call.parts) - 1, first=1)}))"


def several_rows_text(call: Call) -> str | None:
    """The subquery of a call of `at_most_one`, and which columns of the outer row it reads; None for other calls.

    It becomes a part of a message, so it has no signs of a template.
    """
    if call.operation.name != AT_MOST_ONE:
        return None
    query, *keys = map(str, call.operation.options)
    text = f"{query}, for a value of {', '.join(keys)}" if keys else query
    return re.sub(r"[{}]", "", " ".join(text.split()))


def _at_most_one(call: Call) -> str:
    return f"CASE WHEN {{0}} THEN {failing(f'{SEVERAL_ROWS}: {several_rows_text(call)}')} ELSE {{1}} END"


def _raised(call: Call) -> str:
    message = failing(re.sub(r"[{}]", "", str(call.operation.options[0])))
    failed = (
        f"CASE WHEN NOT COALESCE({{0}}, FALSE) THEN {message} END" if call.operation.name == "assert_true" else message
    )
    return failed if pa.types.is_null(call.type) else f"CAST({failed} AS {duckdb_type(call.type)})"


RENDERINGS: dict[str, Rendering] = {
    **{sign: f"({{0}} {sign} {{1}})" for sign in _SIGNS},
    **{test: f"({{0}} {test})" for test in ("IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE")},
    "IN": _in,
    AT_MOST_ONE: _at_most_one,
    "NOT": "(NOT {0})",
    "assert_true": _raised,
    "coalesce": listed("COALESCE"),
    "raise_error": _raised,
}

"""LIKE and RLIKE. The pattern is a literal that means the same to DuckDB as to Spark."""

from __future__ import annotations

from rejoinder.ir.nodes import Call
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing

LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
"""What Java takes for the end of a line, for a character class of RE2."""


def _like(call: Call) -> str:
    (escape,) = call.operation.options
    return f"({{0}} LIKE {{1}} ESCAPE {text_literal(str(escape))})"


def _rlike(call: Call) -> str:
    if not call.operation.can_fail:
        return "regexp_matches({0}, {1})"
    # Java's $ also matches before a last line end, and how depends on what was read before.
    ended = f"regexp_matches({{0}}, '[{LINE_ENDS}]\\z')"
    message = failing("RLIKE with $ on a text that ends with a line end is not supported")
    return f"CASE WHEN {ended} THEN {message} ELSE regexp_matches({{0}}, {{1}}) END"


RENDERINGS: dict[str, Rendering] = {"LIKE": _like, "RLIKE": _rlike}

"""LIKE, RLIKE and REGEXP_EXTRACT. The pattern is a literal that means the same to DuckDB as to Spark."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing

LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
"""What Java takes for the end of a line, for a character class of RE2."""


def _like(call: Call) -> str:
    (escape,) = call.operation.options
    return f"({{0}} LIKE {{1}} ESCAPE {text_literal(str(escape))})"


def _rlike(call: Call) -> str:
    return unless_ended(call, "RLIKE", "regexp_matches({0}, {1})")


def _extract(call: Call) -> str:
    return unless_ended(call, "regexp_extract", f"regexp_extract({{0}}, {{1}}, {call.operation.options[0]})")


def unless_ended(call: Call, name: str, result: str) -> str:
    """Fail on texts that end with a line end if the pattern has `$`.

    Java's `$` also matches before a last line end, and how depends on what was read before.
    """
    if not call.operation.can_fail:
        return result
    message = failing(f"{name} with $ on a text that ends with a line end is not supported")
    return f"CASE WHEN regexp_matches({{0}}, '[{LINE_ENDS}]\\z') THEN {message} ELSE {result} END"


RENDERINGS: dict[str, Rendering] = {"LIKE": _like, "RLIKE": _rlike, "regexp_extract": _extract}

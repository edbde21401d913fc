"""Functions that look for a regular expression, which means the same to DuckDB as to Spark."""

from __future__ import annotations

from collections.abc import Callable

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound
from rejoinder.kernels.duckdb.functions.text.patterns import unless_ended


def _checked(name: str, result: str) -> Callable[[Call], str]:
    return lambda call: unless_ended(call, name, result)


def _extract_all(call: Call) -> str:
    (group,) = call.operation.options
    matches = f"regexp_extract_all({{0}}, {{1}}, {group})"
    # NULL is a group that takes no part
    texts = f"list_transform({matches}, lambda part: COALESCE(part, ''))"
    return unless_ended(call, "regexp_extract_all", texts)


def _split(call: Call) -> str:
    (limit,) = (int(option) for option in call.operation.options)
    parts, with_parts = bound("string_split_regex({0}, {1})")
    if not limit:
        return unless_ended(call, "split", "string_split_regex({0}, {1})")
    pieces = (f"{parts}[:{limit - 1}]", f"regexp_extract_all({{0}}, {{1}})[:{limit - 1}]")
    sizes = (f"COALESCE(list_sum(list_transform({piece}, lambda part: length(part))), 0)" for piece in pieces)
    rest = f"substring({{0}}, CAST({' + '.join(sizes)} AS BIGINT) + 1)"
    limited = f"CASE WHEN len({parts}) <= {limit} THEN {parts} ELSE list_append({pieces[0]}, {rest}) END"
    limited = f"CASE WHEN {{0}} IS NOT NULL THEN {limited} END"
    return unless_ended(call, "split", with_parts(limited))


_BEFORE = r"regexp_extract({0}, '(?s)\A(.*?)(?:' || {1} || ')', 1)"
# Java counts a character beyond U+FFFF twice
_UNITS = rf"(length({_BEFORE}) + len(regexp_extract_all({_BEFORE}, '[\x{{10000}}-\x{{10FFFF}}]')))"
_PLACE = f"CAST(CASE WHEN regexp_matches({{0}}, {{1}}) THEN {_UNITS} + 1 ELSE 0 END AS INTEGER)"

RENDERINGS: dict[str, Rendering] = {
    "regexp_count": _checked("regexp_count", "CAST(len(regexp_extract_all({0}, {1})) AS INTEGER)"),
    "regexp_extract_all": _extract_all,
    "regexp_instr": _checked("regexp_instr", f"CASE WHEN {{0}} IS NOT NULL THEN {_PLACE} END"),
    "regexp_replace": _checked("regexp_replace", "regexp_replace({0}, {1}, {2}, 'g')"),
    "regexp_substr": _checked("regexp_substr", "nullif(regexp_extract({0}, {1}, 0), '')"),
    "split": _split,
}

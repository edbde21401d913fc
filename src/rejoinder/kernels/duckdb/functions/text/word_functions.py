"""More functions on strings."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing


def _choice(call: Call) -> str:
    whens = " ".join(f"WHEN {{0}} = {place} THEN {{{place}}}" for place in range(1, len(call.parts)))
    outside = failing("the number of elt is outside of the list")
    return f"CASE WHEN {{0}} IS NULL THEN NULL {whens} ELSE {outside} END"


def _levenshtein(call: Call) -> str:
    # DuckDB's own compares bytes
    distance = "arrow_levenshtein({0}, {1})"
    if len(call.parts) == 2:
        return distance
    return f"CASE WHEN {distance} > COALESCE({{2}}, 0) THEN -1 ELSE {distance} END"


_NEXT = "({2} + CASE WHEN {3} < 0 THEN length({1}) ELSE {3} END)"
_BEFORE = "left({0}, CASE WHEN {2} > 1 THEN {2} - 1 WHEN {2} IS NOT NULL THEN 0 END)"
_AFTER = (
    f"CASE WHEN {_NEXT} > 0 THEN substring({{0}}, {_NEXT}) WHEN {_NEXT} = 0 THEN {{0}} ELSE right({{0}}, -{_NEXT}) END"
)


def _parts(first: str, last: str) -> str:
    """The number of characters of some parts between separators, with the separators between them."""
    lengths = f"list_transform(list_slice(string_split({{0}}, {{1}}), {first}, {last}), lambda part: length(part))"
    return f"CAST(list_sum({lengths}) + (abs({{2}}) - 1) * length({{1}}) AS BIGINT)"


_COUNT = "len(string_split({0}, {1}))"
_INDEXED = (
    f"CASE WHEN {{1}} = '' OR {{2}} = 0 THEN '' WHEN abs(CAST({{2}} AS BIGINT)) >= {_COUNT} THEN {{0}} "
    f"WHEN {{2}} > 0 THEN left({{0}}, {_parts('1', '{2}')}) "
    f"ELSE right({{0}}, {_parts(_COUNT + ' + {2} + 1', _COUNT)}) END"
)
_FOUND = "COALESCE(CAST(list_position(string_split({1}, ','), {0}) AS INTEGER), 0)"

RENDERINGS: dict[str, Rendering] = {
    "char": "CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} % 256 AS INTEGER)) END",
    "elt": _choice,
    "find_in_set": "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
    f"THEN CASE WHEN contains({{0}}, ',') THEN 0 ELSE {_FOUND} END END",
    "levenshtein": _levenshtein,
    "overlay": f"({_BEFORE} || {{1}} || {_AFTER})",
    "quote": r"('''' || replace({0}, '''', '\''') || '''')",
    "substring_index": f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL AND {{2}} IS NOT NULL THEN {_INDEXED} END",
}

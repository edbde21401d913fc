"""Structs, arrays and maps."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing, listed

_OUTSIDE = failing("an array index is out of bounds")


def _field(call: Call) -> str:
    return f"struct_extract({{0}}, {text_literal(str(call.operation.options[0]))})"


def _struct(call: Call) -> str:
    fields = ", ".join(f"{text_literal(field.name)}: {{{place}}}" for place, field in enumerate(call.type))
    return f"{{{fields}}}"


def _element(fits: str, element: str) -> str:
    return f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {fits} THEN {element} ELSE {_OUTSIDE} END"


def _size(call: Call) -> str:
    return f"CAST({'len' if pa.types.is_list(call.parts[0].type) else 'cardinality'}({{0}}) AS INTEGER)"


_FOUND = "CASE WHEN list_contains({0}, {1}) THEN TRUE WHEN len({0}) > list_count({0}) THEN NULL ELSE FALSE END"

_ENTRY = "'key': struct_extract(entry, 'key'), 'value': struct_extract(entry, 'value')"


def _numbered(entries: str, fields: str) -> str:
    """The elements of a list with their positions, from 0."""
    return f"list_transform({entries}, lambda entry, place: {{'pos': CAST(place - 1 AS INTEGER), {fields}}})"


RENDERINGS: dict[str, Rendering] = {
    "array": listed("list_value"),
    "array_contains": f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {_FOUND} END",
    "array_transform": "list_transform({0}, {1})",
    "element": _element("{1} >= 0 AND {1} < len({0})", "{0}[CAST({1} AS BIGINT) + 1]"),
    "element_at": _element("{1} <> 0 AND abs(CAST({1} AS BIGINT)) <= len({0})", "{0}[{1}]"),
    "field": _field,
    "elements_or_null": "CASE WHEN {0} IS NULL OR len({0}) = 0 THEN [NULL] ELSE {0} END",
    "map_entries": "map_entries({0})",
    "map_value": "{0}[{1}]",
    "numbered_elements": _numbered("{0}", "'col': entry"),
    "numbered_entries": _numbered("map_entries({0})", _ENTRY),
    "size": _size,
    "struct": _struct,
}

"""Functions on maps."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing


def _map(call: Call) -> str:
    places = range(0, len(call.parts), 2)
    keys, values = (", ".join(f"{{{place + odd}}}" for place in places) for odd in (0, 1))
    return f"CAST(map([{keys}], [{values}]) AS {duckdb_type(call.type)})"


def _concat(call: Call) -> str:
    entries = "map_entries({0})"
    for place in range(1, len(call.parts)):
        entries = f"list_concat({entries}, map_entries({{{place}}}))"
    present = " AND ".join(f"{{{place}}} IS NOT NULL" for place in range(len(call.parts)))
    return f"CASE WHEN {present} THEN CAST(map_from_entries({entries}) AS {duckdb_type(call.type)}) END"


def _from_arrays(call: Call) -> str:
    unequal = failing("map_from_arrays takes two arrays of one length")
    made = f"CAST(map({{0}}, {{1}}) AS {duckdb_type(call.type)})"
    checked = f"CASE WHEN len({{0}}) <> len({{1}}) THEN {unequal} ELSE {made} END"
    return f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {checked} END"


def _from_entries(call: Call) -> str:
    key, value = (text_literal(str(name)) for name in call.operation.options)
    keys = f"list_transform({{0}}, lambda entry: struct_extract(entry, {key}))"
    values = f"list_transform({{0}}, lambda entry: struct_extract(entry, {value}))"
    made = f"CAST(map({keys}, {values}) AS {duckdb_type(call.type)})"
    return f"CASE WHEN len({{0}}) = list_count({{0}}) THEN {made} END"


def _from_text(call: Call) -> str:
    between, inside = (text_literal(str(option)) for option in call.operation.options)
    parts, with_parts = bound(f"string_split({{0}}, {between})")
    keys = f"list_transform({parts}, lambda part: split_part(part, {inside}, 1))"
    rest = f"substring(part, instr(part, {inside}) + length({inside}))"
    values = f"list_transform({parts}, lambda part: CASE WHEN contains(part, {inside}) THEN {rest} END)"
    made = with_parts(f"CAST(map({keys}, {values}) AS {duckdb_type(call.type)})")
    return f"CASE WHEN {{0}} IS NOT NULL THEN {made} END"


_ZERO = failing("element_at counts from 1")

RENDERINGS: dict[str, Rendering] = {
    "map": _map,
    "map_concat": _concat,
    "map_contains_key": "list_contains(map_keys({0}), {1})",
    "map_from_arrays": _from_arrays,
    "map_from_entries": _from_entries,
    "map_keys": "map_keys({0})",
    "map_values": "map_values({0})",
    "str_to_map": _from_text,
    "try_element_at": f"CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN {_ZERO} ELSE {{0}}[{{1}}] END",
}

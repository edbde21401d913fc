"""Functions that take a lambda. The lambda is an argument that renders itself (`render`)."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound

_RESULTS, _with_results = bound("list_transform({0}, {1})")


def _any(decisive: str, other: str) -> str:
    """Whether a list of conditions has the one that decides; NULL if it has NULL instead."""
    return _with_results(
        f"CASE WHEN list_contains({_RESULTS}, {decisive}) THEN {decisive} "
        f"WHEN len({_RESULTS}) > list_count({_RESULTS}) THEN NULL WHEN {_RESULTS} IS NOT NULL THEN {other} END"
    )


def _aggregate(call: Call) -> str:
    # in a struct, so that a start that is NULL is an initial value as well
    return "CASE WHEN {0} IS NOT NULL THEN list_reduce({0}, {2}, {1}) END"


def _zipped(call: Call) -> str:
    return f"struct_extract_at({{0}}, {call.operation.options[0]})"


def _made(call: Call, keys: str, values: str) -> str:
    return f"CASE WHEN {{0}} IS NOT NULL THEN CAST(map({keys}, {values}) AS {duckdb_type(call.type)}) END"


def _zipped_maps(call: Call) -> str:
    added = "list_filter(map_keys({1}), lambda added_key: NOT list_contains(map_keys({0}), added_key))"
    keys, with_keys = bound(f"list_concat(map_keys({{0}}), {added})")
    entry = "{'key': zip_key, 'first': {0}[zip_key], 'second': {1}[zip_key]}"
    values = f"list_transform(list_transform({keys}, lambda zip_key: {entry}), {{2}})"
    made = with_keys(f"CAST(map({keys}, {values}) AS {duckdb_type(call.type)})")
    return f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {made} END"


_ENTRIES = "map_entries({0})"

RENDERINGS: dict[str, Rendering] = {
    "aggregate": _aggregate,
    "exists": _any("TRUE", "FALSE"),
    "filter": "list_filter({0}, {1})",
    "forall": _any("FALSE", "TRUE"),
    "map_filter": lambda call: (
        f"CASE WHEN {{0}} IS NOT NULL THEN "
        f"CAST(map_from_entries(list_filter({_ENTRIES}, {{1}})) AS {duckdb_type(call.type)}) END"
    ),
    "map_zip_with": _zipped_maps,
    "place": "CAST({0} - 1 AS INTEGER)",
    "transform_keys": lambda call: _made(call, f"list_transform({_ENTRIES}, {{1}})", "map_values({0})"),
    "transform_values": lambda call: _made(call, "map_keys({0})", f"list_transform({_ENTRIES}, {{1}})"),
    "zip_with": "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN list_transform(list_zip({0}, {1}), {2}) END",
    "zipped": _zipped,
}

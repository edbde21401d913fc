"""Functions on arrays."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.duckdb_words import quoted
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing

_TOO_LONG = failing("an array would have too many elements; the cap is max_value_length")
_BOTH = "{0} IS NOT NULL AND {1} IS NOT NULL"


def _at(array: str, element: str) -> str:
    """The first place of an element, 0 if there is none."""
    return f"COALESCE(list_position({array}, {element}), 0)"


def _first_of_each(array: str, condition: str = "") -> str:
    """Each element once, in its first place."""
    return f"list_filter({array}, lambda element, place: {_at(array, 'element')} = place{condition})"


def _join(call: Call) -> str:
    shown = "{0}" if len(call.parts) == 2 else "list_transform({0}, lambda element: COALESCE(element, {2}))"
    present = "".join(f" AND {{{place}}} IS NOT NULL" for place in range(1, len(call.parts)))
    # array_to_string takes a literal separator only
    listed = f"list_filter({shown}, lambda element: element IS NOT NULL)"
    joined = f"list_reduce({listed}, lambda total, element: total || {{1}} || element)"
    empty = f"len({listed}) = 0"
    return f"CASE WHEN {{0}} IS NOT NULL{present} THEN CASE WHEN {empty} THEN '' ELSE {joined} END END"


def _repeat(call: Call) -> str:
    (most,) = call.operation.options
    repeated = "list_transform(range(CAST(greatest({1}, 0) AS BIGINT)), lambda place: {0})"
    return f"CASE WHEN {{1}} IS NULL THEN NULL WHEN {{1}} > {most} THEN {_TOO_LONG} ELSE {repeated} END"


def _insert(call: Call) -> str:
    (most,) = call.operation.options
    place, size = "CAST({1} AS BIGINT)", "CAST(len({0}) AS BIGINT)"
    # the number of elements before the new one; less than 0 if NULLs come between it and the array
    before = f"CASE WHEN {place} > 0 THEN {place} - 1 ELSE {size} + {place} + 1 END"
    count, with_count = bound(before)
    head = f"list_resize(list_slice({{0}}, 1, {count}), {count})"
    inside = f"list_concat(list_concat({head}, [{{2}}]), list_slice({{0}}, {count} + 1, {size}))"
    nulls = f"list_resize(CAST([] AS {duckdb_type(call.type)}), -{count})"
    outside = f"list_concat(list_concat([{{2}}], {nulls}), {{0}})"
    zero = failing("array_insert counts from 1")
    made = f"CASE WHEN {count} >= 0 THEN {inside} ELSE {outside} END"
    checked = f"CASE WHEN {{1}} = 0 THEN {zero} WHEN abs({count}) > {most} THEN {_TOO_LONG} ELSE {made} END"
    return f"CASE WHEN {_BOTH} THEN {with_count(checked)} END"


def _zip(call: Call) -> str:
    names = (quoted(str(name)) for name in call.operation.options)
    fields = ", ".join(f"{name} := {{{place}}}[place + 1]" for place, name in enumerate(names))
    places = [f"{{{place}}}" for place in range(len(call.parts))]
    longest = f"greatest({', '.join(f'len({place})' for place in places)})"
    packed = f"struct_pack({fields})"
    present = " AND ".join(f"{place} IS NOT NULL" for place in places)
    return f"CASE WHEN {present} THEN list_transform(range(CAST({longest} AS BIGINT)), lambda place: {packed}) END"


def _sequence(call: Call) -> str:
    (most,) = call.operation.options
    start, stop = "CAST({0} AS HUGEINT)", "CAST({1} AS HUGEINT)"
    step = "CAST({2} AS HUGEINT)" if len(call.parts) == 3 else f"CASE WHEN {start} <= {stop} THEN 1 ELSE -1 END"
    wrong = failing("the step of a sequence does not lead from its start to its stop")
    is_back = f"({step}) > 0 AND {start} > {stop} OR ({step}) < 0 AND {start} < {stop}"
    is_wrong = f"({step}) = 0 AND {start} <> {stop} OR {is_back}"
    length = f"({stop} - {start}) // CASE WHEN ({step}) = 0 THEN 1 ELSE ({step}) END + 1"
    item = f"CAST({start} + number * ({step}) AS {duckdb_type(call.type.value_type)})"
    listed = f"list_transform(range(CAST({length} AS BIGINT)), lambda number: {item})"
    return f"CASE WHEN {is_wrong} THEN {wrong} WHEN {length} > {most} THEN {_TOO_LONG} ELSE {listed} END"


def _sort(call: Call) -> str:
    order, nulls = call.operation.options
    return f"list_sort({{0}}, '{order}', '{nulls}')"


def _remove(call: Call) -> str:
    kept = "list_filter({0}, lambda element: element IS NULL OR element <> {1})"
    return f"CASE WHEN {_BOTH} THEN {kept} END"


def _normal(call: Call, place: int) -> str:
    """An array in which -0.0 is 0.0, as functions on sets of elements have it."""
    is_inexact = pa.types.is_floating(call.type.value_type)
    return f"list_transform({{{place}}}, lambda number: number + 0)" if is_inexact else f"{{{place}}}"


def _union(call: Call) -> str:
    both = f"list_concat({_normal(call, 0)}, {_normal(call, 1)})"
    return f"CASE WHEN {_BOTH} THEN {_first_of_each(both)} END"


def _common(test: str) -> Callable[[Call], str]:
    def rendering(call: Call) -> str:
        condition = f" AND {_at(_normal(call, 1), 'element')} {test}"
        return f"CASE WHEN {_BOTH} THEN {_first_of_each(_normal(call, 0), condition)} END"

    return rendering


_START = "CASE WHEN {1} < 0 THEN len({0}) + {1} + 1 ELSE {1} END"
_SLICED = f"list_slice({{0}}, {_START}, {_START} + {{2}} - 1)"
_OVERLAP = (
    "CASE WHEN list_has_any({0}, {1}) THEN TRUE "
    "WHEN len({0}) > 0 AND len({1}) > 0 AND (len({0}) > list_count({0}) OR len({1}) > list_count({1})) THEN NULL "
    "ELSE FALSE END"
)


def _empty(call: Call) -> str:
    return f"CAST([] AS {duckdb_type(call.type)})"


def _slice(call: Call) -> str:
    wrong = failing("slice counts from 1, and takes no negative number of elements")
    is_empty = "{2} = 0 OR -{1} > len({0}) OR {1} > len({0})"
    taken = f"CASE WHEN {is_empty} THEN {_empty(call)} ELSE {_SLICED} END"
    checked = f"CASE WHEN {{1}} = 0 OR {{2}} < 0 THEN {wrong} ELSE {taken} END"
    return f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL AND {{2}} IS NOT NULL THEN {checked} END"


RENDERINGS: dict[str, Rendering] = {
    "array_append": "CASE WHEN {0} IS NOT NULL THEN list_append({0}, {1}) END",
    "array_compact": "list_filter({0}, lambda element: element IS NOT NULL)",
    "array_distinct": lambda call: _first_of_each(_normal(call, 0)),
    "array_except": _common("= 0"),
    "array_insert": _insert,
    "array_intersect": _common("> 0"),
    "array_join": _join,
    "array_max": "list_max({0})",
    "array_min": "list_min({0})",
    "array_position": f"CASE WHEN {_BOTH} THEN CAST({_at('{0}', '{1}')} AS BIGINT) END",
    "array_prepend": "CASE WHEN {0} IS NOT NULL THEN list_prepend({1}, {0}) END",
    "array_remove": _remove,
    "array_repeat": _repeat,
    "array_union": _union,
    "arrays_overlap": f"CASE WHEN {_BOTH} THEN {_OVERLAP} END",
    "arrays_zip": _zip,
    "flatten": "CASE WHEN len({0}) = list_count({0}) THEN flatten({0}) END",
    "get": "CASE WHEN {1} >= 0 AND {1} < len({0}) THEN {0}[CAST({1} AS BIGINT) + 1] END",
    "sequence": _sequence,
    "slice": _slice,
    "sort_array": _sort,
}

"""Fields of JSON objects as columns, all rows at once, whatever scalar a field is written as.

A field is read as text first. A value that does not fit its column is not an error here: the row is marked, by column.
Times may be text or numbers: a number of days for a date; for a timestamp a number of the unit that is given.
Decimals of more than 15 digits do not fit: where they are to be exact, Arrow reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.errors import EvaluationError
from rejoinder.formats.unreadable import Unreadable
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.duckdb_words import quoted, text_literal
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.duckdb.functions.time.zone_functions import instant_text
from rejoinder.kernels.duckdb.leaves import at_leaves
from rejoinder.kernels.duckdb.text_expression import text_expression
from rejoinder.kernels.zones.zone_labels import bare
from rejoinder.kernels.zones.zone_names import zone_name
from rejoinder.kernels.zones.zone_offsets import UTC

# How many microseconds a unit has, and how many units a microsecond.
UNITS: Mapping[str, tuple[int, int]] = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
_NUMBER = "'[+-]?[0-9]+'"
_HAS_OFFSET = "':[0-9.]+ ?(Z|[+-][0-9:]+)$'"
Structure = Mapping[str, object]


def are_json(values: pa.Array) -> Mask:
    """Which texts are JSON; NULL is not."""
    table = pa.table({"value": values})
    valid = project(table, [("valid", text_expression('json_valid("value")', pa.bool_(), ("value",)))]).column("valid")
    return np.asarray(pc.fill_null(valid, False), bool)


def texts_of(values: pa.Array, structure: Structure) -> pa.StructArray:
    """The fields of JSON objects as text; objects within them too. What is not there, or null, is NULL.

    `structure` maps names to None, or to the structure of an object that is to be taken apart as well.

    >>> texts_of(pa.array(['{"a": 1, "b": {"c": true}}', "null"]), {"a": None, "b": {"c": None}}).to_pylist()
    [{'a': '1', 'b': {'c': 'true'}}, None]
    """
    template = json.dumps(_template(structure)).replace("'", "''")
    read = text_expression(f"json_transform(\"value\", '{template}')", _struct(structure), ("value",))
    column = project(pa.table({"value": values}), [("fields", read)]).column("fields").combine_chunks()
    return column if isinstance(column, pa.StructArray) else pa.concat_arrays(column.chunks)


def typed(texts: pa.StructArray, schema: pa.Schema, unit: str | None) -> tuple[pa.Table, dict[str, Mask]]:
    """Columns of a schema from fields as text, and for each column which rows have a value that does not fit it."""
    fields = {field.name: texts.field(field.name) for field in schema}
    table = pa.table(
        {f"{number}": pc.if_else(texts.is_valid(), fields[f.name], None) for number, f in enumerate(schema)}
    )
    outputs = [
        (f.name, text_expression(_typed(quoted(str(number)), f.type, unit), f.type, (str(number),)))
        for number, f in enumerate(schema)
    ]
    result = project(table, outputs)
    misfits = {
        field.name: np.asarray(pc.and_(table.column(f"{number}").is_valid(), result.column(field.name).is_null()), bool)
        for number, field in enumerate(schema)
    }
    return result, {name: mask for name, mask in misfits.items() if mask.any()}


def _template(structure: Structure) -> dict[str, object]:
    return {name: _template(inner) if isinstance(inner, Mapping) else "VARCHAR" for name, inner in structure.items()}


def _struct(structure: Structure) -> pa.DataType:
    return pa.struct(
        [(name, _struct(inner) if isinstance(inner, Mapping) else pa.string()) for name, inner in structure.items()]
    )


def from_base64(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Bytes that are written as base64, at all depths of a column. Raises `pa.ArrowInvalid` if a text is not."""
    read = at_leaves(
        '"value"', kind, lambda value, leaf: f"from_base64({value})" if pa.types.is_binary(leaf) else value
    )
    try:
        decoded = text_expression(read, kind, ("value",))
        return project(pa.table({"value": column}), [("bytes", decoded)]).column("bytes")
    except EvaluationError as failure:
        raise Unreadable("a binary value is not base64", failure.values or "") from None


def _typed(text: str, kind: pa.DataType, unit: str | None) -> str:
    """DuckDB text that reads a text as a type; NULL where it cannot be."""
    if pa.types.is_string(kind):
        return text
    is_nested = pa.types.is_nested(kind)
    return f"TRY({_nested(f'CAST({text} AS JSON)', kind, unit) if is_nested else _scalar(text, kind, unit)})"


def _nested(value: str, kind: pa.DataType, unit: str | None, depth: int = 0) -> str:
    """DuckDB text that reads JSON as a type; fails where it cannot be. Fields that are not there are NULL.

    No part of it stands there twice: DuckDB would evaluate it before, outside of the TRY that is around all.
    """
    part, item = f"part_{depth}", f"item_{depth}"
    if pa.types.is_list(kind):
        inner = _nested(item, kind.value_type, unit, depth + 1)
        return f"list_transform(CAST({value} AS JSON[]), lambda {item}: {inner})"
    if pa.types.is_map(kind):
        keys = f"list_transform(map_keys({part}), lambda {item}: {_scalar(item, kind.key_type, unit)})"
        inner = _nested(item, kind.item_type, unit, depth + 1)
        parsed = f"map({keys}, list_transform(map_values({part}), lambda {item}: {inner}))"
    elif pa.types.is_struct(kind):
        parts = [(text_literal(field.name), field.type) for field in kind]
        fields = ", ".join(f"{name}: {_nested(f'{part}[{name}]', type_, unit, depth + 1)}" for name, type_ in parts)
        parsed = f"CASE WHEN {part} IS NOT NULL THEN {{{fields}}} END"
    else:
        return _scalar(f"({value} ->> '$')", kind, unit)
    return f"list_transform([CAST({value} AS MAP(VARCHAR, JSON))], lambda {part}: {parsed})[1]"


def _scalar(text: str, kind: pa.DataType, unit: str | None) -> str:
    """DuckDB text that reads a text as a scalar; fails where it cannot be."""
    name = duckdb_type(bare(kind))
    is_number = f"regexp_full_match({text}, {_NUMBER})"
    no_number = f"CAST('no number of ours: ' || {text} AS {name})"  # this fails
    if pa.types.is_integer(kind):
        return f"CASE WHEN {is_number} THEN CAST({text} AS {name}) ELSE {no_number} END"
    if pa.types.is_decimal(kind):  # a cast rounds, and a number of more digits has become text by way of a double
        read, digits = f"TRY_CAST({text} AS {name})", f"length(regexp_replace({text}, '[^0-9]', '', 'g'))"
        is_exact = f"{digits} <= 15 AND TRY_CAST({text} AS DOUBLE) = CAST({read} AS DOUBLE)"
        return f"CASE WHEN {is_exact} THEN {read} ELSE {no_number} END"
    if pa.types.is_binary(kind):
        return f"from_base64({text})"
    if pa.types.is_date32(kind):
        days = f"DATE '1970-01-01' + CAST({text} AS INTEGER)"
        return f"CASE WHEN {is_number} THEN {days} ELSE CAST({text} AS DATE) END"
    if pa.types.is_timestamp(kind):
        micros = no_number
        if unit is not None:
            times, parts = UNITS[unit]
            micros = f"make_timestamp(CAST({text} AS BIGINT) * {times} // {parts})"
        # for a column without a zone, only what the clock showed counts
        point = f"CAST({text} AS TIMESTAMP)" if kind.tz is None else point_in_time(text, kind.tz)
        return f"CASE WHEN {is_number} THEN {micros} ELSE {point} END"
    return f"CAST({text} AS {name})"


def point_in_time(text: str, zone: str) -> str:
    """DuckDB text that reads a point in time; a text without an offset is a local time of a zone, by Arrow's name."""
    point = f"make_timestamp(epoch_us(CAST({text} AS TIMESTAMPTZ)))"
    if zone == UTC:
        return point
    local = instant_text(f"CAST({text} AS TIMESTAMP)", text_literal(zone_name(zone) or zone))
    return f"CASE WHEN regexp_matches({text}, {_HAS_OFFSET}) THEN {point} ELSE {local} END"


def lines_of(data: pa.Buffer) -> pa.Array:
    """The lines of a text without their ends; raises `pa.ArrowInvalid` if it is not UTF-8. Cost: one pass."""
    offsets = pa.array([0, data.size], pa.int64()).buffers()[1]
    text = pa.Array.from_buffers(pa.large_utf8(), 1, [None, offsets, data])
    text.validate(full=True)
    lines = pc.list_flatten(pc.split_pattern(text, "\n"))
    return pc.utf8_rtrim(lines, "\r").cast(pa.string())

"""JSON lines. A malformed line fails the epoch, or is diverted, with its number.

Arrow parses them; DuckDB parses the columns that Arrow cannot: maps, and floats if one is text ("NaN").
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from rejoinder.formats.compressed import read_text
from rejoinder.formats.json.chunk_sizes import chunk_limits
from rejoinder.formats.json.json_fields import are_json, from_base64, lines_of, texts_of, typed
from rejoinder.formats.json.key_case import with_other_spellings
from rejoinder.formats.lines import Lines, read_lines
from rejoinder.formats.unreadable import Reason, Unreadable
from rejoinder.ir.catalog import Source
from rejoinder.kernels.duckdb.leaves import has_type, type_of_leaves
from rejoinder.kernels.zones.zone_offsets import UTC

NOT_AN_OBJECT = "the line is not a JSON object; a JSON source has one object on each line"


def read_json(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of the file. Fields that are not declared are ignored, missing ones are NULL, as in Spark.

    Keys match columns without case (`key_case.py`).
    """
    lines, schema = Lines.of(read_text(file, path, source)), _read_schema(source)
    texts = pc.ascii_trim_whitespace(lines.texts())
    filled = np.asarray(pc.not_equal(texts, ""), bool)
    is_other = filled & ~np.asarray(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}")), bool)

    def decode(first: int, last: int) -> pa.Table:
        """Decode a range of lines. All start and end like objects, so their number shows whether each line is one."""
        if is_other[first:last].any():  # Arrow's reader accepts null as an object, or crashes
            raise Unreadable(NOT_AN_OBJECT)
        count = int(np.count_nonzero(filled[first:last]))
        table = parse_json(lines.part(first, last), schema) if count else schema.empty_table()
        if table.num_rows != count:
            raise Unreadable("the line contains more than one JSON object")
        table.validate(full=True)  # text must be UTF-8
        return table

    most_lines, most_bytes = chunk_limits(schema, chunk_rows)
    yield from read_lines(lines, decode, path, source, most_lines, chunk_bytes=most_bytes)


def _read_schema(source: Source) -> pa.Schema:
    fields = list(source.schema)
    extra = source.diff or source.op
    if extra is not None and extra not in source.schema.names:
        fields.append(pa.field(extra, pa.int64() if source.diff else pa.string()))
    return pa.schema(fields)


def parse_json(data: pa.Buffer | bytes, schema: pa.Schema) -> pa.Table:
    """Parse JSON objects, one per line, as rows of a schema. Raises `pa.ArrowInvalid` if one is malformed."""
    if not len(data):
        return schema.empty_table()
    parse = partial(_parse_exact, data)
    return with_other_spellings(parse(schema), memoryview(data), parse)


def _parse_exact(data: pa.Buffer | bytes, schema: pa.Schema) -> pa.Table:
    """Parse objects whose keys are exactly the names of columns."""
    maps = {field.name for field in schema if has_type(field.type, pa.types.is_map) or has_type(field.type, _is_local)}
    floats = {field.name for field in schema if has_type(field.type, pa.types.is_floating)} - maps
    try:
        return _parse(data, schema, maps)
    except pa.ArrowInvalid:
        if not floats:
            raise
    return _parse(data, schema, maps | floats)


def parse_values(values: pa.Array, schema: pa.Schema) -> pa.Table:
    """Parse values, bytes or text, as one JSON object each. Raises `pa.ArrowInvalid` if one is malformed.

    All of them are parsed at once, joined by line breaks. No object can span two values: a string cannot contain a line
    break, nor an object `}` before `{`. So the number of objects shows whether each value is one.
    """
    values = values.cast(pa.binary())
    if not _are_objects(values):
        values = pc.utf8_trim_whitespace(values.cast(pa.string())).cast(pa.binary())
        if not _are_objects(values):
            raise Unreadable("the record is not a JSON object")
    if pc.any(pc.match_substring(values, "\n")).as_py():
        values = pc.replace_substring(values, "\n", " ")
    offsets = pa.array([0, len(values)], pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, values), pa.scalar(b"\n", pa.binary()))
    table = parse_json(joined[0].as_buffer(), schema)
    if table.num_rows != len(values):
        raise Unreadable("the record contains more than one JSON object")
    table.validate(full=True)  # text must be UTF-8
    return table


def _are_objects(values: pa.Array) -> bool:
    ends = pc.and_(pc.starts_with(values, "{"), pc.ends_with(values, "}"))
    return bool(pc.all(ends).as_py())


def parse_fitting(values: pa.Array, schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
    """Parse values; those that do not fit the schema are NULL. Returns the rows, and the reason of each misfit.

    Misfits are isolated by bisection.
    """
    try:
        return parse_values(values, schema), {}
    except pa.ArrowInvalid as failure:
        if len(values) == 1:
            return pa.table([pa.nulls(1, kind) for kind in schema.types], schema=schema), {0: Reason.of(failure)}
    half = len(values) // 2
    first, misfits = parse_fitting(values[:half], schema)
    second, others = parse_fitting(values[half:], schema)
    return pa.concat_tables([first, second]), misfits | {half + number: reason for number, reason in others.items()}


def _parse(data: pa.Buffer | bytes, schema: pa.Schema, as_text: set[str]) -> pa.Table:
    """Parse the columns of `as_text` by DuckDB, and the others by Arrow."""
    direct = pa.schema([field for field in schema if field.name not in as_text])
    columns = _columns(_read(data, direct)) if len(direct) else {}
    if as_text:
        lines = lines_of(pa.py_buffer(data))
        lines = lines.filter(pc.not_equal(pc.utf8_trim_whitespace(lines), ""))
        columns |= _columns(_read_texts(lines, pa.schema([field for field in schema if field.name in as_text])))
    if len({len(column) for column in columns.values()}) > 1:
        raise Unreadable("a JSON object spans several lines, or a line contains two")
    return pa.table(columns).select(schema.names)


def _read(data: pa.Buffer | bytes, schema: pa.Schema) -> pa.Table:
    written = pa.schema([field.with_type(type_of_leaves(field.type, _written)) for field in schema])
    parse = pajson.ParseOptions(explicit_schema=written, unexpected_field_behavior="ignore")
    read = pajson.ReadOptions(use_threads=False, block_size=max(1 << 20, len(data) + 1))
    table = pajson.read_json(pa.BufferReader(data), read, parse)
    if written.equals(schema):
        return table
    binary = {field.name for field in schema if has_type(field.type, pa.types.is_binary)}
    columns = {
        name: from_base64(column, schema.field(name).type) if name in binary else column
        for name, column in _columns(table).items()
    }
    return pa.table(columns).cast(schema)


def _is_local(kind: pa.DataType) -> bool:
    """Whether texts of a type may be local times, which Arrow does not read."""
    return pa.types.is_timestamp(kind) and kind.tz not in (None, UTC)


def _written(kind: pa.DataType) -> pa.DataType:
    """Return the type that Arrow parses a scalar as: bytes and dates are text in JSON, which Arrow does not convert."""
    return pa.string() if pa.types.is_binary(kind) or pa.types.is_date32(kind) else kind


def _read_texts(lines: pa.Array, schema: pa.Schema) -> pa.Table:
    if not (are_json(lines).all() and pc.all(pc.starts_with(pc.utf8_ltrim_whitespace(lines), "{")).as_py()):
        raise Unreadable(NOT_AN_OBJECT)
    table, misfits = typed(texts_of(lines, dict.fromkeys(schema.names)), schema, None)
    for name in misfits:
        raise Unreadable(f"the value of `{name}` does not fit its type, {schema.field(name).type}")
    return table


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))

"""JSON lines; a malformed line fails with its number, or is diverted with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from rejoinder.errors import MalformedInput
from rejoinder.operators.formats.debezium import read_debezium
from rejoinder.operators.formats.rejected import rejected_lines
from rejoinder.plan.catalog import Source


def read_json(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of the file. Fields that are not declared are ignored, missing ones are NULL, as in Spark."""
    data = file.read_buffer()
    if source.is_enveloped:
        yield from read_debezium(data, path, source, chunk_rows)
        return
    schema = _read_schema(source)
    try:
        table = parse_json(data, schema)
    except pa.ArrowInvalid:
        yield from _by_line(data, path, source, schema)
        return
    if table.num_rows != _lines(data):  # a record that goes over lines, or two on one
        yield from _by_line(data, path, source, schema)
        return
    for at in range(0, table.num_rows, chunk_rows):
        yield True, table.slice(at, chunk_rows)


def _read_schema(source: Source) -> pa.Schema:
    fields = [field.with_type(readable(field.type)) for field in source.schema]
    extra = source.diff or source.op
    if extra is not None and extra not in source.schema.names:
        fields.append(pa.field(extra, pa.int64() if source.diff else pa.string()))
    return pa.schema(fields)


def readable(kind: pa.DataType) -> pa.DataType:
    """The type to read a column as: Arrow reads times without zone only, and UTC is meant."""
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def parse_json(data: pa.Buffer | bytes, schema: pa.Schema) -> pa.Table:
    """Read JSON objects as rows of a schema. Raises `pa.ArrowInvalid` if one is malformed."""
    if not len(data):
        return schema.empty_table()
    textual = pa.schema([f.with_type(pa.string()) if pa.types.is_date32(f.type) else f for f in schema])
    parse = pajson.ParseOptions(explicit_schema=textual, unexpected_field_behavior="ignore")
    read = pajson.ReadOptions(use_threads=False, block_size=max(1 << 20, len(data) + 1))
    table = pajson.read_json(pa.BufferReader(data), read, parse)
    return table if textual.equals(schema) else table.cast(schema)  # Arrow's reader takes dates for numbers


def _lines(data: pa.Buffer) -> int:
    """The number of lines that are not empty, the last one with or without an end."""
    if not data.size:
        return 0
    ends = np.frombuffer(data, np.uint8) == ord("\n")
    return int(np.count_nonzero(ends[1:] & ~ends[:-1])) + int(not ends[-1])


def _by_line(data: pa.Buffer, path: str, source: Source, schema: pa.Schema) -> Iterator[tuple[bool, pa.Table]]:
    """The slow way, for a file with an odd line: find the lines at fault; fail on the first or divert them all."""
    odd: list[tuple[int, str, str]] = []
    good: list[bytes] = []
    for number, line in enumerate(data.to_pybytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            json.loads(line)
            parse_json(line, schema)
            good.append(line)
        except (ValueError, pa.ArrowInvalid) as reason:
            odd.append((number, line.decode(errors="replace"), str(reason)))
            if not source.diverts:
                raise MalformedInput(
                    f"line {number} of `{path}` of `{source.name}` is malformed",
                    detail=str(reason),
                    hint="mend the line and run again, or set OPTIONS (malformed 'divert') to send such lines to "
                    f"`{source.rejected}`",
                ) from reason
    if good:
        yield True, parse_json(b"\n".join(good), schema)
    if odd:
        yield False, rejected_lines(path, odd)

"""CSV files with Spark's options `header`, `sep`, `quote`, `nullValue`; malformed lines fail or are diverted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from rejoinder.errors import MalformedInput
from rejoinder.operators.formats.rejected import rejected_lines
from rejoinder.plan.catalog import Source


def read_csv(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of the file. Times are read as UTC; an empty field is NULL, as in Spark."""
    data = file.read_buffer()
    try:
        table = _parse(data, source)
    except pa.ArrowInvalid as failure:
        if not source.diverts:
            raise _malformed(path, source, str(failure)) from failure
        yield from _one_by_one(data, path, source)
        return
    for at in range(0, table.num_rows, chunk_rows):
        yield True, table.slice(at, chunk_rows)


def _parse(data: pa.Buffer | bytes, source: Source) -> pa.Table:
    """Read lines with the options of the source. Raises `pa.ArrowInvalid` if one is malformed."""
    names, types = _columns(source)
    has_header = _has_header(source)
    parse = pacsv.ParseOptions(
        delimiter=source.options.get("sep", source.options.get("delimiter", ",")),
        quote_char=source.options.get("quote", '"'),
        newlines_in_values=source.options.get("multiline", "false").lower() == "true",
    )
    convert = pacsv.ConvertOptions(
        column_types=types,
        null_values=[source.options.get("nullvalue", "")],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        include_columns=None if has_header else list(types),
    )
    read = pacsv.ReadOptions(use_threads=False, block_size=8 << 20, column_names=None if has_header else names)
    return pacsv.read_csv(pa.BufferReader(data), read, parse, convert)


def _has_header(source: Source) -> bool:
    return source.options.get("header", "false").lower() == "true"


def _columns(source: Source) -> tuple[list[str], dict[str, pa.DataType]]:
    """Names in file order when there is no header (the declared columns, op or diff last), and types to read as."""
    types = {field.name: _readable(field.type) for field in source.schema}
    extra = source.diff or source.op
    if extra is not None and extra not in types:
        types[extra] = pa.int64() if source.diff else pa.string()
    return list(types), types


def _readable(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def _one_by_one(data: pa.Buffer, path: str, source: Source) -> Iterator[tuple[bool, pa.Table]]:
    """The slow way for a file with malformed lines: find the lines at fault, divert just those."""
    lines = data.to_pybytes().splitlines(keepends=True)
    top, body = (lines[:1], lines[1:]) if _has_header(source) else ([], lines)
    odd: list[tuple[int, str, str]] = []
    good: list[bytes] = []
    for number, line in enumerate(body, start=1 + len(top)):
        try:
            _parse(b"".join([*top, line]), source)
            good.append(line)
        except pa.ArrowInvalid as failure:
            odd.append((number, line.decode(errors="replace").rstrip("\r\n"), str(failure)))
    if good:
        yield True, _parse(b"".join([*top, *good]), source)
    yield False, rejected_lines(path, odd)


def _malformed(path: str, source: Source, reason: str) -> MalformedInput:
    return MalformedInput(
        f"a line of `{path}` of `{source.name}` is malformed",
        detail=reason,
        hint="mend the line and run again, or set OPTIONS (malformed 'divert') to send such lines to "
        f"`{source.rejected}`",
    )

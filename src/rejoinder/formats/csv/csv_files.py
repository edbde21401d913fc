"""CSV files with Spark's options `header`, `sep`, `quote`, `nullValue`, `multiLine`.

A malformed line fails the epoch, or is diverted, with its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from rejoinder.errors import MalformedInput
from rejoinder.formats.compressed import read_text
from rejoinder.formats.csv.csv_first_line import explained, refuse_hidden_header, refuse_other_header, separator_of
from rejoinder.formats.lines import Decode, Lines, read_lines
from rejoinder.formats.time_text import timestamps
from rejoinder.formats.unreadable import Reason, Unreadable
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.columns import single_chunk

_NUMBERED = re.compile(r"In CSV column #(\d+).*?CSV conversion error to ([^:]+):? ?(.*)", re.DOTALL)


def read_csv(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of the file. Times are read as UTC; an empty field is NULL, as in Spark.

    A record is a line. With the option `multiline`, quoted fields may contain line breaks.
    """
    quote = source.options.get("quote", '"')
    is_multiline = _is_multiline(source)
    lines = Lines.of(read_text(file, path, source), quote if is_multiline else "")
    filled = np.asarray(pc.not_equal(pc.ascii_rtrim(lines.texts(), "\r\n"), ""), bool)
    if not filled.any():
        return
    declared = list(_types(source))
    names, body, top = declared, 0, int(np.argmax(filled))
    has_header = source.options.get("header", "false").lower() == "true"
    if has_header:
        body = top + 1
        names = _header(lines.part(body - 1, body), path, source)
        refuse_other_header(lines.text(top), declared, path, source)
    else:
        refuse_hidden_header(lines.text(top), declared, path, source)

    def decode(first: int, last: int) -> pa.Table:
        """Decode a range of lines. A quote that is not closed on its line reduces the rows, or is on the last line."""
        filled_lines = np.flatnonzero(filled[first:last])
        if not len(filled_lines):
            return pa.table({})
        table = _parse(lines.part(first, last), names, source)
        end = first + int(filled_lines[-1])
        if not is_multiline and not (
            table.num_rows == len(filled_lines) and _is_closed(lines.part(end, end + 1), quote, names, source)
        ):
            raise Unreadable("a quote is not closed on its line")
        return table

    chunk = len(lines) if is_multiline else chunk_rows
    try:
        yield from read_lines(lines, decode, path, source, chunk, body)
    except MalformedInput as error:
        first = None if has_header or _can_read(decode, top) else explained(lines.text(top), declared, path, source)
        raise first or error from None


def _can_read(decode: Decode, line: int) -> bool:
    try:
        decode(line, line + 1)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _is_closed(line: pa.Buffer, quote: str, names: list[str], source: Source) -> bool:
    """Whether all quotes of a line are closed: an open quote would continue in a second copy of the line."""
    text = bytes(line).rstrip(b"\r\n")
    try:
        return not quote or quote.encode() not in text or _parse(b"\n".join([text] * 2), names, source).num_rows == 2
    except pa.ArrowInvalid:
        return False


def _header(line: pa.Buffer, path: str, source: Source) -> list[str]:
    """Return the column names of a file, declared ones in their declared case: names compare without case."""
    try:
        names = pacsv.read_csv(pa.BufferReader(bytes(line) + b"\n"), parse_options=_parsing(source)).column_names
    except (pa.ArrowInvalid, UnicodeDecodeError) as failure:
        raise MalformedInput(
            f"the header of `{path}` of `{source.name}` cannot be read",
            detail=Reason.of(failure).plain,
            values=str(failure),
            hint="fix the line and run again, or leave out OPTIONS (header 'true') if the file has none",
        ) from None
    declared = {name.lower(): name for name in _types(source)}
    return [name if name in declared.values() else declared.get(name.lower(), name) for name in names]


def _parse(data: pa.Buffer | bytes, names: list[str], source: Source) -> pa.Table:
    """Read lines with the options of the source. Raises `pa.ArrowInvalid` if one is malformed."""
    convert = pacsv.ConvertOptions(
        column_types=_types(source),
        null_values=[source.options.get("nullvalue", "")],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    read = pacsv.ReadOptions(use_threads=False, block_size=8 << 20, column_names=names)
    if bytes(memoryview(data)[-1:]) not in (b"\n", b"\r"):
        data = bytes(data) + b"\n"  # else Arrow may take an empty last field for a quoted one
    try:
        table = pacsv.read_csv(pa.BufferReader(data), read, _parsing(source), convert)
    except pa.ArrowInvalid as failure:
        raise _named(failure, names, source) from None
    for number, name in enumerate(names):
        kind = source.schema.field(name).type if name in source.schema.names else None
        if kind is not None and pa.types.is_timestamp(kind):
            table = table.set_column(number, name, timestamps(single_chunk(table.column(number)), kind))
    return table


def _named(failure: pa.ArrowInvalid, names: list[str], source: Source) -> pa.ArrowInvalid:
    """Return the failure with the name of the column instead of its number."""
    match = _NUMBERED.search(str(failure))
    if match is None or int(match[1]) >= len(names):
        return failure
    name = names[int(match[1])]
    return Unreadable(f"a value of column `{name}` cannot be read as {_types(source).get(name, match[2])}", match[3])


def _parsing(source: Source) -> pacsv.ParseOptions:
    return pacsv.ParseOptions(
        delimiter=separator_of(source),
        quote_char=source.options.get("quote", '"') or False,
        newlines_in_values=_is_multiline(source),
    )


def _is_multiline(source: Source) -> bool:
    return source.options.get("multiline", "false").lower() == "true"


def _types(source: Source) -> dict[str, pa.DataType]:
    """Return the types of columns, in the order of files without header: as declared; an undeclared op or diff last."""
    types = [(field.name, _readable(field.type)) for field in source.schema]
    mark = source.diff or source.op
    if mark is not None:
        index = len(types) if source.mark_at is None else source.mark_at
        types.insert(index, (mark, pa.int64() if source.diff else pa.string()))
    return dict(types)


def _readable(kind: pa.DataType) -> pa.DataType:
    """Return the type that Arrow parses: its reader accepts timestamps with an offset or without, but not both."""
    return pa.string() if pa.types.is_timestamp(kind) else kind

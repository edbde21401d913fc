"""Rows as JSON, written column by column in DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.evaluate import project
from rejoinder.kernels.expression import Expression, quoted


def json_rows(table: pa.Table) -> pa.ChunkedArray:
    """Each row as the text of a JSON object. Cost: one pass over the columns.

    >>> json_rows(pa.table({"id": [1], "name": ["it's"]})).to_pylist()
    ['{"id":1,"name":"it\\'s"}']
    """
    fields = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}': {quoted(name)}" for name in table.column_names)
    row = Expression(f"CAST(to_json({{{fields}}}) AS VARCHAR)", pa.string(), tuple(table.column_names))
    return project(table, [("row", row)]).column("row")


def json_lines(table: pa.Table) -> bytes:
    """The rows as lines of JSON, as bytes of a file."""
    if not table.num_rows:
        return b""
    lines = pc.binary_join_element_wise(json_rows(table), "", "\n").cast(pa.large_string())
    buffers = [chunk.buffers()[2].slice(*_extent(chunk)).to_pybytes() for chunk in lines.chunks if len(chunk)]
    return b"".join(buffers)


def _extent(chunk: pa.Array) -> tuple[int, int]:
    """Where the text of a large string array begins in its buffer, and how long it is."""
    offsets = pa.Array.from_buffers(pa.int64(), len(chunk) + 1, [None, chunk.buffers()[1]], offset=chunk.offset)
    first, last = offsets[0].as_py(), offsets[len(chunk)].as_py()
    return first, last - first

"""Rows as JSON, written column by column in DuckDB. What JSON has no form for is text, as Spark's `to_json` writes it.

Bytes are base64; numbers that are none are "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.duckdb.duckdb_words import quoted, text_literal
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.duckdb.leaves import at_leaves
from rejoinder.kernels.duckdb.text_expression import text_expression


def json_rows(table: pa.Table) -> pa.ChunkedArray:
    """Each row as the text of a JSON object. Cost: one pass over the columns.

    >>> json_rows(pa.table({"id": [1], "name": ["it's"]})).to_pylist()
    ['{"id":1,"name":"it\\'s"}']
    """
    fields = ", ".join(
        f"{text_literal(field.name)}: {at_leaves(quoted(field.name), field.type, _written)}" for field in table.schema
    )
    row = text_expression(f"CAST(to_json({{{fields}}}) AS VARCHAR)", pa.string(), tuple(table.column_names))
    return project(table, [("row", row)]).column("row")


def _written(value: str, kind: pa.DataType) -> str:
    if pa.types.is_binary(kind):
        return f"to_base64({value})"
    if pa.types.is_floating(kind):
        infinity = f"WHEN {value} > 0 THEN 'Infinity' WHEN {value} < 0 THEN '-Infinity'"
        name = f"CASE WHEN isnan({value}) THEN 'NaN' {infinity} END"
        return f"CASE WHEN isfinite({value}) THEN to_json({value}) ELSE to_json({name}) END"
    return value


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

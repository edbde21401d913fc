"""Text files: each line is a row with one column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.formats.compressed import read_text
from rejoinder.formats.lines import Lines, read_lines
from rejoinder.ir.catalog import Source

CHUNK_BYTES = 32 << 20


def read_text_lines(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of the lines, without their line ends. An empty line is a row. A line must be UTF-8."""
    lines = Lines.of(read_text(file, path, source))
    texts = lines.texts()

    def decode(first: int, last: int) -> pa.Table:
        part = texts.slice(first, last - first)
        part.validate(full=True)  # text must be UTF-8
        return pa.table([pc.utf8_rtrim(part, "\r\n").cast(pa.string())], schema=source.schema)

    yield from read_lines(lines, decode, path, source, chunk_rows, chunk_bytes=CHUNK_BYTES)

"""Write chunks of rows to a file: Parquet, CSV or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from rejoinder.formats.text.neutral_text import guarded_table
from rejoinder.kernels.duckdb.json_text import json_lines

Writer = Callable[[Any, Iterator[pa.Table], Mapping[str, str]], None]
"""Writes at least one chunk to an open file, with the options of the sink."""


def write_parquet(file: Any, chunks: Iterator[pa.Table], options: Mapping[str, str]) -> None:
    """Write a row group per chunk."""
    first = next(chunks)
    with pq.ParquetWriter(file, first.schema) as writer:
        for chunk in chain([first], chunks):
            writer.write_table(chunk)


def write_csv(file: Any, chunks: Iterator[pa.Table], options: Mapping[str, str]) -> None:
    """Write a header and the rows. Unless `guard` is false, no text is one that a spreadsheet reads as a formula."""
    tables = map(guarded_table, chunks) if options.get("guard", "true") == "true" else chunks
    first = next(tables)
    with pacsv.CSVWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def write_json(file: Any, chunks: Iterator[pa.Table], options: Mapping[str, str]) -> None:
    """Write an object per line."""
    for chunk in chunks:
        file.write(json_lines(chunk))

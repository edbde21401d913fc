"""Parquet files, row group by row group, only the declared columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rejoinder.errors import MalformedInput
from rejoinder.formats.file_caps import FileCaps
from rejoinder.ir.catalog import Source

CHUNK_BYTES = 32 << 20
MOST_BYTES = 256 << 20  # of a chunk, if every string in it were the longest
MOST_ROWS = 1 << 17
_WIDTHS = {"BOOLEAN": 1 / 8, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}


def read_parquet(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of the file. Raises `MalformedInput` if it is not a Parquet file.

    Raises `LimitReached` before a file is read that is too large according to its metadata.
    """
    try:
        parquet = _opened(file)
        size = sum(parquet.metadata.row_group(i).total_byte_size for i in range(parquet.metadata.num_row_groups))
        width = max(1, size // max(1, parquet.metadata.num_rows))
        rows = max(1024, min(chunk_rows, CHUNK_BYTES // width))
        rows = min(rows, MOST_ROWS) if _has_texts(parquet.schema_arrow) else rows  # a million rows may share one string
        declared = {name.lower() for name in [*source.schema.names, source.op or "", source.diff or ""]}
        columns = [name for name in parquet.schema_arrow.names if name.lower() in declared]
        FileCaps(path, source, file.size()).check(_decoded_bytes(parquet, columns))
        for number, fitting in _batch_rows(file, parquet, columns, rows):
            for batch in parquet.iter_batches(fitting, row_groups=number, columns=columns, use_threads=False):
                yield True, pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, OSError) as failure:
        if isinstance(failure, FileNotFoundError | PermissionError):
            raise
        raise _unreadable(path, source, failure) from failure


def parquet_schema(file: Any, path: str, source: Source) -> pa.Schema:
    """Return the columns of the file. Raises `MalformedInput` if it is not a Parquet file."""
    try:
        return _opened(file).schema_arrow
    except pa.ArrowInvalid as failure:
        raise _unreadable(path, source, failure) from failure


def _opened(file: Any) -> pq.ParquetFile:
    return pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)


def _unreadable(path: str, source: Source, failure: Exception) -> MalformedInput:
    return MalformedInput(
        f"`{path}` of `{source.name}` cannot be read as Parquet",
        detail=str(failure),
        hint="replace the file by a complete one and run again: the epoch was not committed",
    )


def _has_texts(schema: pa.Schema) -> bool:
    return any(not (pa.types.is_primitive(field.type) or pa.types.is_boolean(field.type)) for field in schema)


def _chunks_of(parquet: pq.ParquetFile, group: int, columns: Collection[str]) -> Iterator[Any]:
    """Yield the metadata of the column chunks of a row group, for these columns."""
    metadata = parquet.metadata.row_group(group)
    for number in range(metadata.num_columns):
        chunk = metadata.column(number)
        if chunk.path_in_schema.partition(".")[0] in columns:
            yield chunk


def _decoded_bytes(parquet: pq.ParquetFile, columns: Collection[str]) -> int:
    """Return a lower bound of the decoded size of columns: a run of equal numbers is stored only once."""
    return sum(
        int(max(chunk.total_uncompressed_size, chunk.num_values * _WIDTHS.get(chunk.physical_type, 1)))
        for group in range(parquet.metadata.num_row_groups)
        for chunk in _chunks_of(parquet, group, set(columns))
    )


def _batch_rows(
    file: Any, parquet: pq.ParquetFile, columns: Collection[str], rows: int
) -> Iterator[tuple[list[int], int]]:
    """Yield row groups with the number of rows that may be decoded at once, so that a chunk fits into memory.

    A string that many rows share is stored once: in a dictionary, or as a prefix. If such strings could be long, the
    longest is looked up in the dictionary, which costs one page per column and row group. Row groups without such
    strings are yielded together.
    """
    plain: list[int] = []
    for group in range(parquet.metadata.num_row_groups):
        longest = _longest_texts(file, parquet, group, columns, min(rows, parquet.metadata.row_group(group).num_rows))
        if longest * rows <= MOST_BYTES:
            plain.append(group)
            continue
        if plain:
            yield plain, rows
            plain = []
        yield [group], max(1, MOST_BYTES // longest)
    if plain:
        yield plain, rows


def _longest_texts(file: Any, parquet: pq.ParquetFile, group: int, columns: Collection[str], rows: int) -> int:
    """Return the largest size of the shared strings of a row in bytes; 0 if they cannot exceed the limit."""
    longest, looked_up = 0, []
    for chunk in _chunks_of(parquet, group, set(columns)):
        if chunk.physical_type != "BYTE_ARRAY" or chunk.total_uncompressed_size * rows <= MOST_BYTES:
            continue
        if "." not in chunk.path_in_schema and "DELTA_BYTE_ARRAY" not in chunk.encodings:
            looked_up += [chunk.path_in_schema] if chunk.has_dictionary_page else []
        else:  # nested values and prefixes cannot be looked up
            longest += chunk.total_uncompressed_size
    if looked_up:
        probe = pq.ParquetFile(file, metadata=parquet.metadata, read_dictionary=looked_up, pre_buffer=False)
        first = next(probe.iter_batches(1, row_groups=[group], columns=looked_up, use_threads=False))
        for column in first.columns:
            lengths = pc.binary_length(column.dictionary) if pa.types.is_dictionary(column.type) else None
            longest += (pc.max(lengths).as_py() or 0) if lengths is not None else 0
    return longest

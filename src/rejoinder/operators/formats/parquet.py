"""Parquet files, row group by row group, only the declared columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rejoinder.errors import MalformedInput
from rejoinder.plan.catalog import Source

CHUNK_BYTES = 32 << 20
MOST_ROWS = 1 << 17


def _has_texts(schema: pa.Schema) -> bool:
    return any(not (pa.types.is_primitive(field.type) or pa.types.is_boolean(field.type)) for field in schema)


def read_parquet(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of the file; a file that is no Parquet is an error that names it."""
    try:
        parquet = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
        size = sum(parquet.metadata.row_group(i).total_byte_size for i in range(parquet.metadata.num_row_groups))
        width = max(1, size // max(1, parquet.metadata.num_rows))
        rows = max(1024, min(chunk_rows, CHUNK_BYTES // width))
        rows = min(rows, MOST_ROWS) if _has_texts(parquet.schema_arrow) else rows  # one text may stand for a million
        wanted = {name.lower() for name in [*source.schema.names, source.op or "", source.diff or ""]}
        columns = [name for name in parquet.schema_arrow.names if name.lower() in wanted]
        for batch in parquet.iter_batches(batch_size=rows, columns=columns, use_threads=False):
            yield True, pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, OSError) as failure:
        if isinstance(failure, FileNotFoundError | PermissionError):
            raise
        raise MalformedInput(
            f"`{path}` of `{source.name}` cannot be read as Parquet",
            detail=str(failure),
            hint="replace the file by a complete one and run again: the epoch was not committed",
        ) from failure

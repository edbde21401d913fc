"""Arrow IPC files, and files of in-memory sources, which have their checksum in their name."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from rejoinder.errors import Corrupt, MalformedInput
from rejoinder.formats.file_caps import FileCaps
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.ipc_sizes import decoded_sizes


def read_arrow(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of the file, batch by batch. Raises `LimitReached` before a batch that is too large is read."""
    limits = FileCaps(path, source, file.size())
    try:
        dictionaries, sizes = decoded_sizes(file)
        limits.check_at_once(dictionaries)
        limits.check(dictionaries + sum(sizes))
        limits.check_at_once(max(sizes, default=0))
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield from _chunks(pa.Table.from_batches([reader.get_batch(number)]), chunk_rows)
    except (pa.ArrowInvalid, OSError) as failure:
        raise MalformedInput(
            f"`{path}` of `{source.name}` cannot be read as an Arrow file",
            detail=str(failure),
            hint="replace the file by a complete one and run again: the epoch was not committed",
        ) from failure


def read_inserted(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of a file that `insert` or `delete` wrote. Raises `Corrupt` if it fails its checksum."""
    data = file.read_buffer()
    if not path.endswith(f"-{zlib.crc32(data):08x}.arrow"):
        raise Corrupt(
            f"rows that were inserted into `{source.name}` are damaged",
            detail=f"`{path}` fails the checksum in its name",
            hint="restore the file from a backup, or delete it and insert its rows again: no epoch has read it",
        )
    yield from _chunks(pa.ipc.open_file(data).read_all(), chunk_rows)


def _chunks(table: pa.Table, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    for start in range(0, table.num_rows, chunk_rows):
        yield True, table.slice(start, chunk_rows)

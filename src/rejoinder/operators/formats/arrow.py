"""Arrow IPC files: what the in-memory source writes, memory-mapped by whoever can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from rejoinder.errors import MalformedInput
from rejoinder.plan.catalog import Source


def read_arrow(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks of the file."""
    try:
        table = pa.ipc.open_file(file).read_all()
    except (pa.ArrowInvalid, OSError) as failure:
        raise MalformedInput(
            f"`{path}` of `{source.name}` cannot be read as an Arrow file",
            detail=str(failure),
            hint="replace the file by a whole one and run again: the epoch was not committed",
        ) from failure
    for at in range(0, table.num_rows, chunk_rows):
        yield True, table.slice(at, chunk_rows)

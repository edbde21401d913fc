"""In-memory sources on Spark: inserted rows are numbered Arrow files beside the state until an epoch reads them.

The name of a file ends with the checksum of its content, which the reading task checks. The position of the source in
the manifest records which files were read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.engine.time.explicit_watermarks import zoned_rows
from rejoinder.errors import InputError, NullKey, near_misses
from rejoinder.host.private_files import make_folder, replace_file
from rejoinder.ir.catalog import UTC, Source
from rejoinder.kernels.arrow.columns import DIFF, replaced
from rejoinder.kernels.arrow.ipc_buffers import file_buffers
from rejoinder.state.inbox_names import inbox_name
from rejoinder.store.objects.storage_failure import storage_failed


class Inbox:
    """Writes rows to the folder of their source. Each source may have one writer at a time.

    `identity` returns the identity of a source in the committed state.
    """

    def __init__(self, beside: str, identity: Callable[[str], str], zone: Callable[[], str] = lambda: UTC) -> None:
        self.base = f"{beside}/inbox"
        self._identity, self._zone = identity, zone

    def folder(self, source: str) -> str:
        """Return the folder of the unread rows of a source."""
        return f"{self.base}/{inbox_name(source, self._identity(source))}"

    def prepare(self, source: Source) -> None:
        """Create the folder, so that Spark can watch it. Raises `StorageFailed`."""
        try:
            make_folder(self.folder(source.name), os.path.dirname(self.base))
        except OSError as failure:
            raise storage_failed(f"could not make the inbox of `{source.name}`", failure) from failure

    def newest(self, source: Source) -> int:
        """Return the number of the newest file; 0 if there is none."""
        self.prepare(source)
        names = os.listdir(self.folder(source.name))
        return max((int(name[:20]) for name in names if name[:20].isdigit()), default=0)

    def add(self, source: Source, rows: pa.Table | Sequence[Mapping[str, Any]], sign: int) -> None:
        """Write rows as one new file, atomically. Raises `InputError` or `NullKey`."""
        if sign < 0 and source.kind == "stream":
            raise InputError(f"stream `{source.name}` is append-only", hint="CREATE CHANGELOG or CREATE TABLE instead")
        table = checked_rows(source, rows, self._zone())
        table = replaced(table, DIFF, np.full(table.num_rows, sign, np.int64))
        folder = self.folder(source.name)
        number = max(self.newest(source) + 1, time.time_ns() // 1_000_000)  # ascending, whatever the clock does
        part = f"{folder}/.{number:020d}.part"
        content = file_buffers(table)
        with replace_file(part) as file:
            for data in content.parts:
                file.write(data)
        # Spark reads files in the order of their modification times, in milliseconds.
        os.utime(part, ns=(number * 1_000_000,) * 2)
        os.replace(part, f"{folder}/{number:020d}-{content.crc:08x}.arrow")


def checked_rows(source: Source, rows: pa.Table | Sequence[Mapping[str, Any]], zone: str = UTC) -> pa.Table:
    """Return rows with the columns of a source; missing columns are NULL. Times of dicts are in the flow's zone.

    Raises `InputError` or `NullKey` for rows that no epoch could read.
    """
    if not isinstance(rows, pa.Table) and (isinstance(rows, Mapping) or not all(isinstance(r, Mapping) for r in rows)):
        raise InputError(
            f"rows for `{source.name}` are a list of dicts or an Arrow table",
            detail=f"this is of type {type(rows).__name__}",
            values=repr(rows)[:200],
            hint='as in flow.insert("orders", [{"id": 1}])',
        )
    source = source.recorded
    columns = rows.column_names if isinstance(rows, pa.Table) else dict.fromkeys(name for row in rows for name in row)
    names = source.schema.names
    for name in columns:
        if name not in names:
            raise InputError(
                f"`{source.name}` has no column `{name}`",
                detail=f"columns: {', '.join(names)}",
                hint=near_misses(str(name), names) or None,
            )
    try:
        if isinstance(rows, pa.Table):
            for field in source.schema:
                if field.name not in columns:
                    rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
            table = rows.select(names).cast(source.schema)
        else:
            table = pa.Table.from_pylist(zoned_rows(rows, source.schema, zone), schema=source.schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as failure:
        raise InputError(
            f"a row does not fit the columns of `{source.name}`",
            detail=f"columns: {', '.join(f'{field.name} {field.type}' for field in source.schema)}",
            values=str(failure),
            hint="give values of these types",
        ) from None
    for name in source.primary_key:
        if table.column(name).null_count:
            raise NullKey(
                f"NULL in the primary key of `{source.name}`",
                detail=f"column `{name}` of a row that was to be inserted or deleted",
                hint="give every row its key",
            )
    return table

"""In-memory sources on Spark: rows wait as numbered Arrow files beside the state, so that a replay finds them."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.errors import InputError
from rejoinder.kernels.columns import DIFF, replaced
from rejoinder.plan.catalog import Source
from rejoinder.store.objects import ObjectStore


class Inbox:
    """Writes rows to the folder of their source. One writer at a time per source."""

    def __init__(self, store: ObjectStore) -> None:
        base = store.url.removeprefix("file://") if store.is_local else tempfile.mkdtemp(prefix="rejoinder-")
        self.base = f"{base}/inbox"

    def folder(self, source: str) -> str:
        """Where the rows of a source wait. The name is hashed: it may hold anything."""
        return f"{self.base}/{hashlib.blake2b(source.lower().encode(), digest_size=8).hexdigest()}"

    def prepare(self, source: Source) -> None:
        """Make the folder, so that there is something to watch."""
        os.makedirs(self.folder(source.name), exist_ok=True)

    def add(self, source: Source, rows: pa.Table | Sequence[Mapping[str, Any]], sign: int) -> None:
        """Write rows as one new file; it appears whole or not at all."""
        if sign < 0 and source.kind == "stream":
            raise InputError(f"stream `{source.name}` is append-only", hint="CREATE CHANGELOG or CREATE TABLE instead")
        try:
            table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=source.schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as failure:
            raise InputError(f"a row does not fit the columns of `{source.name}`", detail=str(failure)) from failure
        if DIFF not in table.column_names:
            table = replaced(table, DIFF, np.full(table.num_rows, sign, np.int64))
        self.prepare(source)
        folder = self.folder(source.name)
        number = time.time_ns() // 1_000_000
        while os.path.exists(f"{folder}/{number:020d}.arrow"):
            number += 1
        part = f"{folder}/.{number:020d}.part"
        with pa.OSFile(part, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        os.replace(part, f"{folder}/{number:020d}.arrow")

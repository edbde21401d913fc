"""A store on top of another: reads fall through to it, writes stay in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rejoinder.store.objects.object_store import Bytes, ObjectStore


class Scratch(ObjectStore):
    """Holds the runs that an ad-hoc query writes; nothing is written to the store below."""

    def __init__(self, below: ObjectStore) -> None:
        super().__init__(below.url, below._options)
        self._below = below
        self._written: dict[str, pa.Buffer] = {}

    def write(self, name: str, data: Bytes | Sequence[Bytes]) -> None:
        """Keep the object in memory."""
        parts: Sequence[Any] = [data] if isinstance(data, (bytes, bytearray, memoryview, pa.Buffer)) else data
        self._written[name] = pa.py_buffer(b"".join(memoryview(part) for part in parts))

    def map(self, name: str, size: int) -> pa.Buffer:
        """Return an object that was written here, or else that of the store below."""
        return self._written[name] if name in self._written else self._below.map(name, size)

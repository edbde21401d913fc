"""A store on top of another: reads go through, writes stay in this object and are forgotten with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rejoinder.store.objects.object_store import Bytes, ObjectStore


class Scratch(ObjectStore):
    """Runs that an ad-hoc query writes live here; nothing reaches the store below."""

    def __init__(self, below: ObjectStore) -> None:
        super().__init__(below.url, below._options)
        self._below = below
        self._written: dict[str, pa.Buffer] = {}

    def write(self, name: str, data: Bytes | Sequence[Bytes]) -> None:
        """Keep the object in memory."""
        parts: Sequence[Any] = [data] if isinstance(data, (bytes, bytearray, memoryview, pa.Buffer)) else data
        self._written[name] = pa.py_buffer(b"".join(memoryview(part) for part in parts))

    def map(self, name: str, size: int) -> pa.Buffer:
        """Give what was written here, or what the store below has."""
        return self._written[name] if name in self._written else self._below.map(name, size)

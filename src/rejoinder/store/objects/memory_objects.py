"""Objects in this process's memory, for tests and the in-process driver.

Invariant: a process has one `Memory` per name of a store. Each step is one operation on a dict, hence atomic.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import pyarrow as pa

from rejoinder.store.objects.object_store import Entry

_stores: dict[str, Memory] = {}


class Memory:
    """A dict of buffers. Each process has its own, empty at the start; a forked process starts with a copy."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[pa.Buffer, float]] = {}

    @classmethod
    def named(cls, place: str) -> Memory:
        """Return the store of that name, created at its first use."""
        return _stores.setdefault(place, cls())

    def put(self, name: str, data: memoryview) -> None:
        self._objects[name] = (pa.py_buffer(bytes(data)), time.time())

    def put_if_absent(self, name: str, data: memoryview) -> bool:
        stored = (pa.py_buffer(bytes(data)), time.time())
        return self._objects.setdefault(name, stored) is stored

    def write(self, name: str, data: Sequence[memoryview]) -> None:
        stored = (pa.py_buffer(b"".join(data)), time.time())
        if self._objects.setdefault(name, stored) is not stored:
            raise FileExistsError(17, "the name is taken")

    def get(self, name: str) -> bytes:
        content: bytes = self._find(name).to_pybytes()
        return content

    def map(self, name: str, size: int) -> pa.Buffer:
        return self._find(name)

    def size(self, name: str) -> int:
        size: int = self._find(name).size
        return size

    def entries(self, prefix: str) -> Iterable[Entry]:
        folder = f"{prefix}/" if prefix else ""
        return [
            Entry(name, buffer.size, modified)
            for name, (buffer, modified) in self._objects.copy().items()
            if name.startswith(folder)
        ]

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._objects.pop(name, None)

    def drop_cached(self, name: str) -> None:
        pass

    def sweep(self, older_than_seconds: float) -> None:
        pass

    def _find(self, name: str) -> pa.Buffer:
        stored = self._objects.get(name)
        if stored is None:
            raise FileNotFoundError(name)
        return stored[0]


def drop_memory(place: str) -> None:
    """Free the in-memory store `memory://place`. Open stores keep their objects; new ones start empty."""
    _stores.pop(place, None)

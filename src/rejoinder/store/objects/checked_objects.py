"""Checked objects: immutable objects whose size and checksum are stored in the reference to them.

The manifest holds the reference, so the manifest's own checksum covers every byte that is read back.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rejoinder.errors import Corrupt
from rejoinder.store.objects.object_store import ObjectStore


@dataclass(frozen=True)
class CheckedRef:
    """A reference to an object: its name, its size in bytes, and its CRC-32."""

    name: str
    size: int
    crc: int

    def to_json(self) -> list[Any]:
        """Return plain data for the manifest."""
        return [self.name, self.size, self.crc]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> CheckedRef:
        """Read what `to_json` returned."""
        return cls(str(data[0]), int(data[1]), int(data[2]))


def write_checked(store: ObjectStore, name: str, data: bytes) -> CheckedRef:
    """Store `data` under a name that was never used before, and return the reference to it."""
    store.write(name, data)
    return CheckedRef(name, len(data), zlib.crc32(data))


def read_checked(store: ObjectStore, ref: CheckedRef, what: str) -> bytes:
    """Return what `write_checked` stored. Raises `Corrupt`, naming `what`, if it is missing or damaged."""
    data: bytes = _intact(store, ref, what, lambda: store.get(ref.name))
    return data


def map_checked(store: ObjectStore, ref: CheckedRef, what: str) -> pa.Buffer:
    """Map a large object, as `read_checked` reads a small one."""
    return _intact(store, ref, what, lambda: store.map(ref.name, ref.size))


def _intact(store: ObjectStore, ref: CheckedRef, what: str, read: Callable[[], Any]) -> Any:
    data = read()
    if len(data) != ref.size or zlib.crc32(data) != ref.crc:
        store.drop_cached(ref.name)  # the object may be intact, and only this host's copy damaged
        data = read()
    if len(data) != ref.size or zlib.crc32(data) != ref.crc:
        raise Corrupt(
            f"{what} fails its checksum",
            detail=f"`{ref.name}` in {store.url} has {len(data)} bytes; the manifest says {ref.size} bytes "
            f"with checksum {ref.crc:08x}",
            hint="restore this object, or the whole state, from a backup",
        )
    return data

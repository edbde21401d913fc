"""A spool: files on the local disk by which one round passes deltas to the next, instead of through the JVM.

Between Python workers of one host this costs one write and one memory map; the exchange carries references only. A
file has a new name for every task attempt. The driver deletes an epoch's folder at the end of the epoch. Small deltas
stay in the exchange row. A reference contains the checksum of the data that it points to.
"""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.errors import StorageFailed
from rejoinder.host.entropy import token
from rejoinder.host.private_files import create_file, make_folder
from rejoinder.kernels.arrow.ipc_buffers import stream_buffers
from rejoinder.store.objects.storage_failure import storage_failed

INLINE_BYTES = 1 << 18
_MARK = b"@"
_PLACE = struct.Struct("<QQI")
_ALIGNMENT = 64


@dataclass(frozen=True)
class Spool:
    """A folder on this host."""

    folder: str

    def write(self, epoch: int, tables: Iterable[pa.Table]) -> list[bytes]:
        """Write tables to one new file and return a reference to each. Raises `StorageFailed`."""
        path = f"{self.folder}/{epoch}/{token(16)}"
        references, offset = [], 0
        try:
            make_folder(os.path.dirname(path), self.folder)
            with create_file(path, buffering=0) as file:
                for table in tables:
                    sink = stream_buffers(table)
                    for part in sink.parts:
                        file.write(part)
                    references.append(_MARK + _PLACE.pack(offset, sink.size, sink.crc) + path.encode())
                    padding = -sink.size % _ALIGNMENT
                    file.write(bytes(padding))
                    offset += sink.size + padding
        except OSError as error:
            raise storage_failed(f"could not write `{path}`", error) from error
        return references

    def clear(self, epoch: int | None = None) -> None:
        """Delete the files of an epoch, or of all epochs."""
        shutil.rmtree(self.folder if epoch is None else f"{self.folder}/{epoch}", ignore_errors=True)


def is_reference(payload: pa.Buffer) -> bool:
    """Whether an exchange payload is a reference to a spool."""
    return bool(payload.size > 0 and payload.slice(0, 1).to_pybytes() == _MARK)


def read_spooled(payload: pa.Buffer) -> pa.Table:
    """Return the table behind a reference, memory-mapped. Raises `StorageFailed` if the file is missing or damaged."""
    reference = payload.to_pybytes()
    offset, size, crc = _PLACE.unpack_from(reference, 1)
    path = reference[1 + _PLACE.size :].decode()
    try:
        mapped = pa.memory_map(path).read_buffer()
    except OSError as error:
        raise storage_failed(f"could not read `{path}`", error) from error
    data = mapped.slice(offset, size) if offset + size <= mapped.size else mapped.slice(0, 0)
    if zlib.crc32(data) != crc:
        raise StorageFailed(
            "a temporary file of the epoch is damaged",
            detail=f"`{path}` fails its checksum",
            hint="run again: nothing was committed. Check the disk if it happens again",
        )
    return pa.ipc.open_stream(data).read_all()

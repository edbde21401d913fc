"""Arrow IPC as a list of buffers: a table is serialized without a copy of its data."""

from __future__ import annotations

import zlib

import pyarrow as pa


class Buffers:
    """A file object for Arrow that keeps the written buffers, and computes their checksum."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[pa.Buffer | bytes] = []
        self.size = 0
        self.crc = 0

    def write(self, data: pa.Buffer | bytes) -> int:
        """Append a buffer."""
        size = len(data)
        self.parts.append(data)
        self.size += size
        self.crc = zlib.crc32(data, self.crc)
        return size

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self.size

    def flush(self) -> None:
        """Do nothing: there is no buffering."""

    def close(self) -> None:
        """Do nothing."""


def file_buffers(table: pa.Table) -> Buffers:
    """Return the table as an Arrow IPC file of one batch."""
    sink = Buffers()
    with pa.ipc.new_file(pa.PythonFile(sink, "w"), table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink


def stream_buffers(table: pa.Table) -> Buffers:
    """Return the table as an Arrow IPC stream."""
    sink = Buffers()
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), table.schema) as writer:
        writer.write_table(table)
    return sink

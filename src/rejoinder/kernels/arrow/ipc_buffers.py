"""Arrow IPC as a list of buffers: a table is written without being put together in memory first."""

from __future__ import annotations

import zlib

import pyarrow as pa


class Buffers:
    """A file for Arrow to write to: takes the buffers as they are, and their checksum."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[pa.Buffer | bytes] = []
        self.size = 0
        self.crc = 0

    def write(self, data: pa.Buffer | bytes) -> int:
        """Take a buffer."""
        size = len(data)
        self.parts.append(data)
        self.size += size
        self.crc = zlib.crc32(data, self.crc)
        return size

    def tell(self) -> int:
        """How much was taken."""
        return self.size

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing to close."""


def file_buffers(table: pa.Table) -> Buffers:
    """The table as an Arrow IPC file of one batch."""
    sink = Buffers()
    with pa.ipc.new_file(pa.PythonFile(sink, "w"), table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink


def stream_buffers(table: pa.Table) -> Buffers:
    """The table as an Arrow IPC stream."""
    sink = Buffers()
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), table.schema) as writer:
        writer.write_table(table)
    return sink

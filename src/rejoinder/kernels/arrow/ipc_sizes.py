"""The decompressed size of the batches of an Arrow file, from its metadata alone.

Arrow allocates the decompressed size that a compressed buffer states before it decompresses it. So a file of a few
bytes can request any amount of memory, and must be checked before it is read. Only the footer, the metadata of each
batch and the first eight bytes of each compressed buffer are read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

_MAGIC = b"ARROW1"
_DICTIONARIES, _BATCHES = 2, 3  # fields of the footer
_HEADER_TYPE, _HEADER = 1, 2  # fields of a message
_DICTIONARY_BATCH = 2  # a type of message
_DATA = 1  # the field of a dictionary batch that holds its record batch
_BUFFERS, _COMPRESSION = 2, 3  # fields of a record batch
_PREFIX = 8


class _Table:
    """A table of a FlatBuffer. Raises `struct.error` where it points out of its bytes."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.fields = at - self._number("<i", at)

    def _number(self, kind: str, at: int) -> int:
        if at < 0:
            raise struct.error("a position before the first byte")
        value: int = struct.unpack_from(kind, self.data, at)[0]
        return value

    def _place(self, field: int) -> int | None:
        slot = 4 + 2 * field
        if slot >= self._number("<H", self.fields):
            return None
        offset = self._number("<H", self.fields + slot)
        return self.at + offset if offset else None

    def byte(self, field: int) -> int:
        place = self._place(field)
        return 0 if place is None else self._number("<B", place)

    def table(self, field: int) -> _Table | None:
        place = self._place(field)
        return None if place is None else _Table(self.data, place + self._number("<I", place))

    def structs(self, field: int, layout: str) -> Iterator[tuple[int, ...]]:
        place = self._place(field)
        if place is None:
            return
        start = place + self._number("<I", place)
        count, size = self._number("<I", start), struct.calcsize(layout)
        if start + 4 + count * size > len(self.data):
            raise struct.error("a vector that ends behind the last byte")
        for number in range(count):
            yield struct.unpack_from(layout, self.data, start + 4 + number * size)


def _root(data: bytes) -> _Table:
    return _Table(data, struct.unpack_from("<I", data, 0)[0])


def decoded_sizes(file: Any) -> tuple[int, list[int]]:
    """Return the decompressed bytes of all dictionaries of a file together, and of each of its record batches.

    Raises `pa.ArrowInvalid` if the metadata cannot be read.
    """
    size = file.size()
    try:
        length, magic = struct.unpack("<i6s", bytes(file.read_at(10, size - 10)))
        if magic != _MAGIC or not 0 < length <= size - 10:
            raise struct.error("no footer")
        footer = _root(bytes(file.read_at(length, size - 10 - length)))
        dictionaries = sum(_decoded(file, *block) for block in footer.structs(_DICTIONARIES, "<qi4xq"))
        return dictionaries, [_decoded(file, *block) for block in footer.structs(_BATCHES, "<qi4xq")]
    except (struct.error, OSError, ValueError, OverflowError) as failure:
        raise pa.ArrowInvalid("the metadata of the Arrow file is invalid") from failure


def _decoded(file: Any, offset: int, metadata: int, body: int) -> int:
    """Return the decompressed bytes of the batch at an offset, where its metadata is followed by its body."""
    if offset < 0 or metadata < 8 or body < 0 or offset + metadata + body > file.size():
        raise struct.error("a batch that ends behind the last byte")
    head = bytes(file.read_at(metadata, offset))
    message = _root(head[8:] if head[:4] == b"\xff" * 4 else head[4:])
    batch = message.table(_HEADER)
    if batch is not None and message.byte(_HEADER_TYPE) == _DICTIONARY_BATCH:
        batch = batch.table(_DATA)
    if batch is None or batch.table(_COMPRESSION) is None:
        return body
    total = 0
    for start, length in batch.structs(_BUFFERS, "<qq"):
        if length < _PREFIX:
            continue
        if start < 0 or start + length > body:
            raise struct.error("a buffer that ends behind its batch")
        (decompressed,) = struct.unpack("<q", bytes(file.read_at(_PREFIX, offset + metadata + start)))
        total += length if decompressed < 0 else decompressed  # negative: the buffer is not compressed
    return total

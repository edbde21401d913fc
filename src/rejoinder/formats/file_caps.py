"""Caps on the decoded size of a file: checked before memory is allocated, if the file states its size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.errors import LimitReached
from rejoinder.host.caps import cap_reached, caps
from rejoinder.host.memory import memory_cap
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.columns import Int64
from rejoinder.kernels.duckdb.leaves import has_type

RATIO_FROM = 256 << 20  # decoded bytes; the ratio of smaller files is not limited
PIECE_BYTES = 64 << 20  # of rows with shared values, after expansion


@dataclass(frozen=True)
class FileCaps:
    """The caps for one file of a source; `stored` is its size in bytes."""

    path: str
    source: Source
    stored: int

    def check(self, decoded: int) -> None:
        """Raise `LimitReached` if the file decodes to too many bytes in total."""
        limits = caps()
        if decoded > limits.max_file_bytes:
            raise self._reached("is too large", "max_file_bytes", decoded)
        if decoded > RATIO_FROM and decoded > limits.max_file_ratio * self.stored:
            raise self._reached("expands too far", "max_file_ratio", decoded)

    def check_at_once(self, decoded: int) -> None:
        """Raise `LimitReached` if so many bytes, which must be in memory together, do not fit."""
        self.check(decoded)
        if decoded > memory_cap():
            raise cap_reached(
                f"file `{self.path}` of `{self.source.name}` does not fit into memory",
                "max_memory",
                f"{decoded:,} bytes of it must be in memory together",
                most=memory_cap(),
                remedy="split the file into smaller ones",
            )

    def _reached(self, what: str, cap: str, decoded: int) -> LimitReached:
        return cap_reached(
            f"file `{self.path}` of `{self.source.name}` {what}",
            cap,
            f"{self.stored:,} bytes become {decoded:,} or more",
        )


def capped(chunks: Iterator[tuple[bool, pa.Table]], limits: FileCaps) -> Iterator[tuple[bool, pa.Table]]:
    """Yield chunks and raise `LimitReached` once their total exceeds a cap. Costs nothing per row of plain columns."""
    total = 0
    for is_usable, table in chunks:
        for piece, size in _pieces(table, limits):
            total += size
            limits.check(total)
            yield is_usable, piece


def _pieces(table: pa.Table, limits: FileCaps) -> Iterator[tuple[pa.Table, int]]:
    """Split rows with shared values (dictionaries, views) so that each piece is small after expansion."""
    shared = [number for number, field in enumerate(table.schema) if has_type(field.type, _is_shared)]
    if not shared:
        yield table, table.nbytes
        return
    sizes = np.zeros(table.num_rows, np.int64)
    for number in shared:
        sizes += _row_bytes(table.column(number), limits)
    ends = np.cumsum(sizes)
    limits.check(int(ends[-1]) if len(ends) else 0)
    start = 0
    while start < table.num_rows:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + PIECE_BYTES, "right")))
        yield table.slice(start, stop - start), int(ends[stop - 1]) - before
        start = stop


def _is_shared(kind: pa.DataType) -> bool:
    """Whether several rows can share one value in memory."""
    types = pa.types
    is_view = types.is_string_view(kind) or types.is_binary_view(kind)
    return bool(types.is_dictionary(kind) or is_view or types.is_list_view(kind) or types.is_large_list_view(kind))


def _row_bytes(column: pa.ChunkedArray, limits: FileCaps) -> Int64:
    """Return the bytes of each row of a column with shared values after expansion."""
    if not column.num_chunks:
        return np.zeros(0, np.int64)
    return np.concatenate([_chunk_bytes(chunk, limits) for chunk in column.chunks])


def _chunk_bytes(chunk: pa.Array, limits: FileCaps) -> Int64:
    if pa.types.is_dictionary(chunk.type):
        lengths = _lengths(chunk.dictionary)
        return np.asarray(pc.fill_null(pa.array(lengths).take(chunk.indices), 0), np.int64)
    if pa.types.is_nested(chunk.type):
        raise cap_reached(
            f"file `{limits.path}` of `{limits.source.name}` cannot be read within its caps",
            "max_file_ratio",
            f"a column of type {chunk.type} shares values between rows",
            remedy="write it without dictionaries and views inside lists and structs",
        )
    return _lengths(chunk)


def _lengths(values: pa.Array) -> Int64:
    """Return the bytes of each value. Views store the length of each value, since values may overlap."""
    kind = values.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = np.frombuffer(values.buffers()[1], np.int32).reshape(-1, 4)
        return np.asarray(views[values.offset : values.offset + len(values), 0], np.int64)
    if pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind):
        return np.full(len(values), max(1, kind.bit_width // 8), np.int64)
    lengths = pc.binary_length(values) if not pa.types.is_nested(kind) else pa.array([values.nbytes] * len(values))
    return np.asarray(pc.fill_null(lengths, 0), np.int64)

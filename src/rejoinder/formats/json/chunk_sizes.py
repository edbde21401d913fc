"""How much of a JSON text may be decoded at once: even a line of two characters has a value in every column."""

from __future__ import annotations

import pyarrow as pa

MOST_BYTES = 256 << 20  # of a decoded chunk, without strings
_ITEM = 2  # characters of the shortest item of an array, with its comma


def chunk_limits(schema: pa.Schema, rows: int) -> tuple[int, int]:
    """Return the maximum number of lines, at most `rows`, and of characters of a chunk.

    >>> chunk_limits(pa.schema([("a", pa.int64())]), 1000)[0]
    1000
    >>> chunk_limits(pa.schema([(f"c{n}", pa.int64()) for n in range(20_000)]), 10_000)[0]
    1677
    """
    width = sum(_width(kind) for kind in schema.types)
    item = max((_item_width(kind) for kind in schema.types), default=0)
    return min(rows, max(1, MOST_BYTES // max(1, width))), max(1, MOST_BYTES * _ITEM // max(1, item))


def _inner(kind: pa.DataType) -> list[pa.DataType]:
    return [kind.field(number).type for number in range(kind.num_fields)] if pa.types.is_nested(kind) else []


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a value, without strings and items."""
    if pa.types.is_struct(kind):
        return sum(map(_width, _inner(kind)))
    return max(1, kind.bit_width // 8) if pa.types.is_primitive(kind) else 4


def _item_width(kind: pa.DataType) -> int:
    """Return the bytes of an item of the widest nested array."""
    own = 0 if pa.types.is_struct(kind) else sum(map(_width, _inner(kind)))
    return max([own, *map(_item_width, _inner(kind))])

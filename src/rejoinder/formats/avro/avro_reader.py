"""Avro binary to Arrow, column by column: field after field is decoded for all records at once.

Every record has a cursor, and a decoder moves the cursors of the records that it is asked for. So the Python work is
one pass per field (for arrays and maps: per position up to the longest), whatever the number of records.
A record that does not hold what the schema says raises `pa.ArrowInvalid`; which one it was is for the caller to find.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rejoinder.formats.unreadable import Unreadable
from rejoinder.kernels.arrow.columns import Int64

Rows = Int64
Decoder = Callable[["Cursors", Rows], pa.Array]

_TIMES = {
    "timestamp-millis": (1000, pa.timestamp("us", tz="UTC")),
    "timestamp-micros": (1, pa.timestamp("us", tz="UTC")),
    "local-timestamp-millis": (1000, pa.timestamp("us")),
    "local-timestamp-micros": (1, pa.timestamp("us")),
}


class Cursors:
    """The bytes of all records, and how far each is read."""

    def __init__(self, values: pa.Array) -> None:
        offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1].astype(np.int64)
        held = values.buffers()[2]
        self.data = np.frombuffer(held, np.uint8) if held is not None and held.size else np.zeros(0, np.uint8)
        self.at, self.ends = offsets[:-1].copy(), offsets[1:]

    def span(self, rows: Rows, lengths: Int64) -> npt.NDArray[np.uint8]:
        """The next bytes of some records, so many of each, one after the other."""
        starts = self.at[rows]
        if (lengths < 0).any() or (lengths > self.ends[rows] - starts).any():
            raise Unreadable("the record ends in the middle of a value")
        self.at[rows] = starts + lengths
        before = np.cumsum(lengths) - lengths
        return self.data[np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))]

    def longs(self, rows: Rows) -> Int64:
        """The next number of some records: zigzag, seven bits a byte."""
        value = np.zeros(len(rows), np.uint64)
        open_ = np.arange(len(rows))
        for shift in range(0, 70, 7):
            byte = self.span(rows[open_], np.ones(len(open_), np.int64)).astype(np.uint64)
            value[open_] |= (byte & np.uint64(0x7F)) << np.uint64(min(shift, 63))
            open_ = open_[byte >= 0x80]
            if not len(open_):
                break
        else:
            raise Unreadable("a number goes on for more than ten bytes")
        signs = (value & np.uint64(1)).view(np.int64)
        numbers: Int64 = (value >> np.uint64(1)).view(np.int64) ^ -signs
        return numbers


def decode_avro(values: pa.Array, schema: str) -> pa.Table:
    """The fields of a record schema as columns. No value may be NULL."""
    return decode_rows(Cursors(values), np.arange(len(values)), schema)


def decode_rows(cursors: Cursors, rows: Rows, schema: str) -> pa.Table:
    """The fields of some records, from their cursors to their ends, as columns."""
    record = _record(schema)(cursors, rows)
    if (cursors.at[rows] != cursors.ends[rows]).any():
        raise Unreadable("bytes are left over after the last field")
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(record)])


def fields_of(schema: str) -> pa.Schema:
    """The fields of a record schema as columns. Raises `ValueError`, `KeyError` or `TypeError` if it cannot be used."""
    return decode_avro(pa.array([], pa.binary()), schema).schema


def _record(schema: str) -> Decoder:
    tree = json.loads(schema)
    if not isinstance(tree, dict) or tree.get("type") != "record":
        raise ValueError("the schema is not a record")
    return _decoder(tree, {}, "")


def _decoder(tree: Any, named: dict[str, Decoder | None], space: str) -> Decoder:
    """The decoder of a schema. `named` holds the types that have a name; None: it is being made."""
    if isinstance(tree, list):
        return _union(tree, named, space)
    if isinstance(tree, str):
        tree = {"type": tree}
    kind = tree.get("type")
    if isinstance(kind, dict | list):
        return _decoder(kind, named, space)
    if kind in _PRIMITIVES:
        return _logical(tree, kind)
    if kind == "array":
        return _many(_decoder(tree["items"], named, space), is_map=False)
    if kind == "map":
        return _many(_decoder(tree["values"], named, space), is_map=True)
    if kind not in ("record", "enum", "fixed"):
        name = kind if "." in str(kind) else f"{space}.{kind}".lstrip(".")
        decoder = named.get(name, named.get(str(kind)))
        if decoder is None:
            raise ValueError(f"type `{kind}` {'contains itself' if name in named else 'is not known'}")
        return decoder
    space = tree.get("namespace", space)
    full = tree["name"] if "." in tree["name"] else f"{space}.{tree['name']}".lstrip(".")
    named[full] = None
    decoder = _named(tree, kind, named, space)
    named[full] = decoder
    return decoder


def _named(tree: dict[str, Any], kind: str, named: dict[str, Decoder | None], space: str) -> Decoder:
    if kind == "record":
        fields = [(field["name"], _decoder(field["type"], named, space)) for field in tree["fields"]]
        if not fields:
            raise ValueError(f"record `{tree['name']}` has no fields")
        return lambda cursors, rows: pa.StructArray.from_arrays(
            [decode(cursors, rows) for _, decode in fields], names=[name for name, _ in fields]
        )
    if kind == "fixed":
        size = int(tree["size"])
        fixed: Decoder = lambda cursors, rows: _binary(cursors, rows, np.full(len(rows), size))  # noqa: E731
        return _decimal(tree, fixed) if tree.get("logicalType") == "decimal" else fixed
    symbols = pa.array(tree["symbols"], pa.string())

    def enum(cursors: Cursors, rows: Rows) -> pa.Array:
        return symbols.take(pa.array(_within(cursors.longs(rows), len(symbols), "symbol")))

    return enum


def _union(branches: list[Any], named: dict[str, Decoder | None], space: str) -> Decoder:
    others = [branch for branch in branches if branch != "null"]
    if len(others) != 1 or len(branches) > 2:
        raise ValueError(f"a union of {json.dumps(branches)} is not supported: one type, and perhaps null")
    decode = _decoder(others[0], named, space)
    value = branches.index(others[0])

    def union(cursors: Cursors, rows: Rows) -> pa.Array:
        chosen = _within(cursors.longs(rows), len(branches), "branch of a union") == value
        places = np.cumsum(chosen) - 1
        return decode(cursors, rows[chosen]).take(pa.array(places, mask=~chosen))

    return union


def _within(numbers: Int64, count: int, what: str) -> Int64:
    if ((numbers < 0) | (numbers >= count)).any():
        raise Unreadable(f"there is no such {what}")
    return numbers


def _many(decode: Decoder, *, is_map: bool) -> Decoder:
    """Arrays and maps: blocks of a count and so many items, until a count of zero."""

    def many(cursors: Cursors, rows: Rows) -> pa.Array:
        owners: list[Int64] = [np.zeros(0, np.int64)]
        keys, items = [_text(cursors, rows[:0])], [decode(cursors, rows[:0])]
        left = np.arange(len(rows))
        room = cursors.ends[rows] - cursors.at[rows]  # items without bytes, such as null, must not be endless
        while len(left):
            counts = cursors.longs(rows[left])
            cursors.longs(rows[left[counts < 0]])  # the size of the block in bytes, of which we make no use
            counts = np.abs(counts)
            room[left] -= counts
            if (counts > cursors.ends[rows[left]] - cursors.at[rows[left]]).any() or (room[left] < 0).any():
                raise Unreadable("a block has more items than the record has bytes")
            left, counts = left[counts > 0], counts[counts > 0]
            for place in range(int(counts.max(initial=0))):
                who = left[counts > place]
                owners.append(who)
                if is_map:
                    keys.append(_text(cursors, rows[who]))
                items.append(decode(cursors, rows[who]))
        owner = np.concatenate(owners)
        order = pa.array(np.argsort(owner, kind="stable"))
        ends = np.cumsum(np.bincount(owner, minlength=len(rows)))
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        values = pa.concat_arrays(items).take(order)
        if is_map:
            return pa.MapArray.from_arrays(offsets, pa.concat_arrays(keys).take(order), values)
        return pa.ListArray.from_arrays(offsets, values)

    return many


def _binary(cursors: Cursors, rows: Rows, lengths: Int64) -> pa.Array:
    held = cursors.span(rows, lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(held)])


def _bytes(cursors: Cursors, rows: Rows) -> pa.Array:
    return _binary(cursors, rows, cursors.longs(rows))


def _text(cursors: Cursors, rows: Rows) -> pa.Array:
    return _bytes(cursors, rows).cast(pa.string())


def _boolean(cursors: Cursors, rows: Rows) -> pa.Array:
    return pa.array(_within(cursors.span(rows, np.ones(len(rows), np.int64)).astype(np.int64), 2, "boolean") == 1)


def _int(cursors: Cursors, rows: Rows) -> pa.Array:
    return pa.array(cursors.longs(rows)).cast(pa.int32())


def _floating(width: int) -> Decoder:
    def floating(cursors: Cursors, rows: Rows) -> pa.Array:
        return pa.array(cursors.span(rows, np.full(len(rows), width)).view(f"<f{width}"))

    return floating


_PRIMITIVES: dict[str, Decoder] = {
    "null": lambda cursors, rows: pa.nulls(len(rows)),
    "boolean": _boolean,
    "int": _int,
    "long": lambda cursors, rows: pa.array(cursors.longs(rows)),
    "float": _floating(4),
    "double": _floating(8),
    "bytes": _bytes,
    "string": _text,
}


def _logical(tree: dict[str, Any], kind: str) -> Decoder:
    """A primitive type, and what its values mean."""
    decode, meaning = _PRIMITIVES[kind], tree.get("logicalType")
    if kind == "int" and meaning == "date":
        return lambda cursors, rows: decode(cursors, rows).view(pa.date32())
    if kind == "long" and meaning in _TIMES:
        factor, type_ = _TIMES[meaning]
        return lambda cursors, rows: pa.array(cursors.longs(rows) * factor).view(type_)
    if kind == "bytes" and meaning == "decimal":
        return _decimal(tree, decode)
    return decode


def _decimal(tree: dict[str, Any], decode: Decoder) -> Decoder:
    """Big-endian two's complement of any length, as 16 bytes little-endian."""
    type_ = pa.decimal128(int(tree["precision"]), int(tree.get("scale", 0)))

    def decimal(cursors: Cursors, rows: Rows) -> pa.Array:
        held = decode(cursors, rows)
        offsets = np.frombuffer(held.buffers()[1], np.int32).astype(np.int64)
        data = np.frombuffer(held.buffers()[2], np.uint8) if held.buffers()[2].size else np.zeros(0, np.uint8)
        starts, ends = offsets[:-1], offsets[1:]
        if (ends - starts > 16).any():
            raise Unreadable("a decimal of more than 16 bytes")
        if (ends == starts).any():
            raise Unreadable("a decimal of no bytes")
        places = ends[:, None] - 1 - np.arange(16)[None, :]
        negative = data[starts] >= 0x80 if len(starts) else np.zeros(0, bool)
        fill = np.where(negative, 0xFF, 0).astype(np.uint8)[:, None]
        wide = np.where(places >= starts[:, None], data[np.maximum(places, 0)] if len(data) else 0, fill)
        buffer = pa.py_buffer(np.ascontiguousarray(wide, np.uint8))
        return pa.Array.from_buffers(type_, len(rows), [None, buffer])

    return decimal

"""Arrow to Avro binary, column by column: the mirror of `formats.avro.avro_reader`.

What a field writes for all records is one run of bytes and a length for each record; the fields of a record are woven
into each other at the end. So the Python work is one pass per field, whatever the number of records, and the cost is
that of the bytes written, once for each level of nesting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import Int64, single_chunk

Bytes = npt.NDArray[np.uint8]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIMES = {
    "timestamp-millis": 1000,
    "timestamp-micros": 1,
    "local-timestamp-millis": 1000,
    "local-timestamp-micros": 1,
}


@dataclass(frozen=True)
class Written:
    """Bytes of many records, one after the other, and how many belong to each."""

    lengths: Int64
    data: Bytes


Writer = Callable[[pa.Array], Written]


def encode_avro(table: pa.Table, schema: str, frame: bytes = b"") -> pa.Array:
    """Each row as a record of a schema, after the bytes of a frame; fields take columns of their names, in any case.

    Raises `pa.ArrowInvalid` for a value that the schema does not take, `ValueError` if it does not fit the columns.

    >>> text = avro_schema("tea", pa.schema([("n", pa.int64())]))
    >>> encode_avro(pa.table({"n": [1, None]}), text).to_pylist()
    [b'\\x02\\x02', b'\\x00']
    """
    tree = json.loads(schema)
    if not isinstance(tree, dict) or tree.get("type") != "record":
        raise ValueError("the schema is not a record")
    columns = [single_chunk(table.column(name)) for name in table.column_names]
    rows = pa.StructArray.from_arrays(columns, fields=list(table.schema)) if columns else pa.array([], pa.struct([]))
    head = Written(np.full(len(rows), len(frame)), np.tile(np.frombuffer(frame, np.uint8), len(rows)))
    written = _woven([head, _writer(tree, rows.type, "")(rows)])
    offsets = np.concatenate([[0], np.cumsum(written.lengths)])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(written.data)]
    return pa.Array.from_buffers(pa.large_binary(), len(rows), buffers)


def avro_schema(name: str, schema: pa.Schema) -> str:
    """The schema of records that hold rows; every field may be null. Raises `ValueError` for what Avro cannot hold."""
    record = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return json.dumps(_record(record if _NAME.match(record) else f"_{record}", list(schema)))


def _record(name: str, fields: Sequence[pa.Field]) -> dict[str, Any]:
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise ValueError(f"column `{field.name}` has no name for Avro: letters, digits and underscores")
    listed = [
        {"name": field.name, "type": ["null", _tree(field.type, f"{name}_{field.name}")], "default": None}
        for field in fields
    ]
    return {"type": "record", "name": name, "fields": listed}


def _tree(kind: pa.DataType, name: str) -> Any:
    """The Avro type of an Arrow type; `name` is for a record that it needs."""
    types = pa.types
    if types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if types.is_date32(kind):
        return {"type": "int", "logicalType": "date"}
    if types.is_struct(kind):
        return _record(name, list(kind.fields))
    if types.is_map(kind) and types.is_string(kind.key_type):
        return {"type": "map", "values": ["null", _tree(kind.item_type, name)]}
    if types.is_list(kind):
        return {"type": "array", "items": ["null", _tree(kind.value_type, name)]}
    plain = {
        "boolean": types.is_boolean,
        "long": types.is_int64,
        "int": types.is_integer,
        "float": types.is_float32,
        "double": types.is_float64,
        "string": types.is_string,
        "bytes": types.is_binary,
    }
    type_name = next((avro for avro, is_type in plain.items() if is_type(kind)), None)
    if type_name is None:
        raise ValueError(f"`{name}` is {kind}, which Avro does not have")
    return type_name


def _writer(tree: Any, kind: pa.DataType, path: str) -> Writer:
    """What writes values of an Arrow type as an Avro type; `path` names the field in errors."""
    if isinstance(tree, list):
        return _union(tree, kind, path)
    if isinstance(tree, str):
        tree = {"type": tree}
    avro, meaning = tree.get("type"), tree.get("logicalType")
    if isinstance(avro, dict | list):
        return _writer(avro, kind, path)
    write = _of_fields(tree, avro, kind, path) or _of_values(tree, avro, meaning, kind)
    if write is None:
        shown = f"{avro} ({meaning})" if meaning else avro
        raise ValueError(f"field `{path.lstrip('.')}` is Avro's {shown}, and its column is {kind}")

    def written(values: pa.Array) -> Written:
        if values.null_count:
            raise pa.ArrowInvalid(f"NULL in field `{path.lstrip('.')}`, which takes none")
        return write(values)

    return written


def _of_fields(tree: dict[str, Any], avro: object, kind: pa.DataType, path: str) -> Writer | None:
    """Records, arrays and maps."""
    types = pa.types
    if avro == "record" and types.is_struct(kind):
        columns = {field.name.lower(): position for position, field in enumerate(kind.fields)}
        missing = [field["name"] for field in tree["fields"] if field["name"].lower() not in columns]
        if missing:
            raise ValueError(f"field `{f'{path}.{missing[0]}'.lstrip('.')}` has no column")
        places = [columns[field["name"].lower()] for field in tree["fields"]]
        writers = [
            _writer(field["type"], kind.field(at).type, f"{path}.{field['name']}")
            for field, at in zip(tree["fields"], places, strict=True)
        ]

        def record(rows: pa.Array) -> Written:
            columns = rows.flatten()
            parts = [write(columns[at]) for write, at in zip(writers, places, strict=True)]
            return _woven([_nothing(len(rows)), *parts])

        return record
    if avro == "array" and types.is_list(kind):
        item = _writer(tree["items"], kind.value_type, path)
        return lambda lists: _blocks(pc.list_value_length(lists), item(lists.flatten()))
    if avro == "map" and types.is_map(kind) and types.is_string(kind.key_type):
        value = _writer(tree["values"], kind.item_type, path)

        def map_(maps: pa.Array) -> Written:
            first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
            keys, items = maps.keys.slice(first, last - first), maps.items.slice(first, last - first)
            counts = np.diff(np.asarray(maps.offsets))
            return _blocks(pa.array(counts), _woven([_texts(keys), value(items)]))

        return map_
    return None


def _of_values(tree: dict[str, Any], avro: object, meaning: object, kind: pa.DataType) -> Writer | None:
    """Everything that holds nothing else."""
    types = pa.types
    if meaning in _TIMES and avro == "long" and types.is_timestamp(kind):
        factor = _TIMES[str(meaning)]
        return lambda values: _longs(np.asarray(values.cast(pa.timestamp("us", kind.tz)).view(pa.int64())) // factor)
    if meaning == "decimal" and avro == "bytes" and types.is_decimal(kind):
        exact = pa.decimal128(int(tree["precision"]), int(tree.get("scale", 0)))
        return lambda values: _decimals(values.cast(exact))
    if meaning == "date" and avro == "int" and types.is_date32(kind):
        return lambda values: _longs(np.asarray(values.view(pa.int32())))
    if avro == "int" and types.is_integer(kind):
        return lambda values: _longs(np.asarray(values.cast(pa.int32())))
    if avro == "long" and types.is_integer(kind):
        return lambda values: _longs(np.asarray(values))
    if avro in ("float", "double") and types.is_floating(kind):
        width = 4 if avro == "float" else 8
        return lambda values: _fixed(np.asarray(values).astype(f"<f{width}").view(np.uint8), width)
    if avro == "boolean" and types.is_boolean(kind):
        return lambda values: _fixed(np.asarray(values.cast(pa.uint8())), 1)
    if (avro == "string" and types.is_string(kind)) or (avro == "bytes" and types.is_binary(kind) and not meaning):
        return _texts
    return None


def _union(branches: list[Any], kind: pa.DataType, path: str) -> Writer:
    others = [branch for branch in branches if branch != "null"]
    if len(others) != 1 or len(branches) > 2:
        raise ValueError(f"a union of {json.dumps(branches)} is not supported: one type, and perhaps null")
    write, value = _writer(others[0], kind, path), 2 * branches.index(others[0])  # numbers are zigzag

    def union(values: pa.Array) -> Written:
        if len(branches) == 1 and values.null_count:
            raise pa.ArrowInvalid(f"NULL in field `{path.lstrip('.')}`, which takes none")
        is_valid = np.asarray(values.is_valid())
        held = write(values.drop_null())
        lengths = np.zeros(len(values), np.int64)
        lengths[is_valid] = held.lengths
        null = 2 * branches.index("null") if "null" in branches else value
        return _woven([_fixed(np.where(is_valid, value, null).astype(np.uint8), 1), Written(lengths, held.data)])

    return union


def _woven(parts: Sequence[Written]) -> Written:
    """The bytes of several fields record by record."""
    lengths: Int64 = np.stack([part.lengths for part in parts]).sum(axis=0, dtype=np.int64)
    places = np.cumsum(lengths) - lengths
    data = np.empty(int(lengths.sum()), np.uint8)
    for part in parts:
        starts = np.cumsum(part.lengths) - part.lengths
        data[np.repeat(places - starts, part.lengths) + np.arange(len(part.data))] = part.data
        places = places + part.lengths
    return Written(lengths, data)


def _blocks(counts: pa.Array, items: Written) -> Written:
    """Items in lists of so many: one block with its count, and the zero that ends the blocks."""
    numbers = np.asarray(counts).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(items.lengths)])[np.cumsum(numbers)]
    held = Written(np.diff(ends, prepend=0), items.data)
    some = numbers > 0
    heads = _longs(numbers[some])
    lengths = np.zeros(len(numbers), np.int64)
    lengths[some] = heads.lengths
    return _woven([Written(lengths, heads.data), held, _fixed(np.zeros(len(numbers), np.uint8), 1)])


def _nothing(rows: int) -> Written:
    return Written(np.zeros(rows, np.int64), np.zeros(0, np.uint8))


def _fixed(data: Bytes, width: int) -> Written:
    return Written(np.full(len(data) // width, width), data)


def _longs(values: npt.NDArray[Any]) -> Written:
    """Numbers: zigzag, seven bits a byte."""
    signed = values.astype(np.int64)
    numbers = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    shifted = numbers[:, None] >> np.arange(0, 70, 7, dtype=np.uint64)
    lengths = np.maximum(1, (shifted > 0).sum(axis=1))
    places = np.arange(10)[None, :]
    more = np.where(places < lengths[:, None] - 1, 0x80, 0).astype(np.uint64)
    digits = (shifted & np.uint64(0x7F)) | more
    return Written(lengths, digits[places < lengths[:, None]].astype(np.uint8))


def _texts(values: pa.Array) -> Written:
    """Texts and bytes: a length, then so many bytes."""
    large = values.cast(pa.large_binary())
    offsets = np.frombuffer(large.buffers()[1], np.int64)[large.offset :][: len(large) + 1]
    held = large.buffers()[2]
    data = np.frombuffer(held, np.uint8)[offsets[0] : offsets[-1]] if held is not None else np.zeros(0, np.uint8)
    lengths = np.diff(offsets)
    return _woven([_longs(lengths), Written(lengths, data)])


def _decimals(values: pa.Array) -> Written:
    """Sixteen bytes of two's complement, the highest first."""
    held = np.frombuffer(values.buffers()[1], np.uint8)[16 * values.offset :][: 16 * len(values)]
    turned = np.ascontiguousarray(held.reshape(-1, 16)[:, ::-1]).reshape(-1)
    return _woven([_longs(np.full(len(values), 16)), Written(np.full(len(values), 16), turned)])

"""Columns written as Avro records come back as they were, and equal what is written value by value."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.formats.avro.avro_reader import decode_avro
from rejoinder.formats.avro.avro_writer import avro_schema, encode_avro
from tests.unit.formats.avro.test_avro_reader import encoded

LONGS = st.integers(-(2**63), 2**63 - 1)
ITEM = pa.struct([("n", pa.int64()), ("t", pa.string())])
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "id": (pa.int64(), LONGS),
    "small": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "is_open": (pa.bool_(), st.booleans()),
    "rate": (pa.float64(), st.floats(allow_nan=False)),
    "name": (pa.string(), st.text()),
    "raw": (pa.binary(), st.binary()),
    "day": (pa.date32(), st.dates()),
    "at": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(timezone.utc))),
    "local": (pa.timestamp("us"), st.datetimes()),
    "price": (pa.decimal128(38, 2), st.decimals("-1e20", "1e20", places=2)),
    "item": (ITEM, st.fixed_dictionaries({"n": st.none() | LONGS, "t": st.none() | st.text()})),
    "items": (pa.list_(ITEM), st.lists(st.none() | st.fixed_dictionaries({"n": LONGS, "t": st.text()}))),
    "tags": (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(st.text(), st.none() | LONGS).map(lambda d: [*d.items()]),
    ),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in COLUMNS.items()}), max_size=8)


@given(ROWS, st.integers(0, 3))
def test_all_types_come_back(rows: list[dict[str, Any]], cut: int) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA).slice(cut)
    written = encode_avro(table, avro_schema("all", SCHEMA))
    assert decode_avro(written.cast(pa.binary()), avro_schema("all", SCHEMA)).to_pylist() == table.to_pylist()


@given(st.lists(st.tuples(LONGS, st.none() | st.text(), st.lists(LONGS, max_size=2)), min_size=1))
def test_by_the_letter(rows: list[tuple[Any, ...]]) -> None:
    fields: list[tuple[str, Any]] = [
        ("id", "long"),
        ("name", ["string", "null"]),
        ("list", {"type": "array", "items": "long"}),
    ]
    tree: dict[str, Any] = {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }
    given_ = [dict(zip(("id", "name", "list"), row, strict=True)) for row in rows]
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("list", pa.list_(pa.int64()))])
    table = pa.Table.from_pylist(given_, schema)
    plain = {**tree, "fields": tree["fields"][:2]}
    assert encode_avro(table, json.dumps(plain)).to_pylist() == [encoded(plain, row) for row in given_]
    assert decode_avro(encode_avro(table, json.dumps(tree)).cast(pa.binary()), json.dumps(tree)).to_pylist() == given_


def record(type_: Any) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "X", "type": type_}]})


@pytest.mark.parametrize(
    ("type_", "value", "bytes_"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime(1970, 1, 1, 0, 0, 1, 999), b"\xd0\x0f"),
        ({"type": "int", "logicalType": "date"}, date(1970, 1, 2), b"\x02"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 1},
            Decimal("-0.1"),
            b"\x20" + b"\xff" * 16,
        ),
        ("int", 3, b"\x06"),
        ("float", 1.0, b"\x00\x00\x80\x3f"),
    ],
)
def test_given_types(type_: Any, value: Any, bytes_: bytes) -> None:
    assert encode_avro(pa.table({"x": [value]}), record(type_), b"\x00\x00\x00\x00\x07").to_pylist() == [
        b"\x00\x00\x00\x00\x07" + bytes_
    ]


@pytest.mark.parametrize(
    ("type_", "values", "reason"),
    [
        ("long", pa.array(["a"]), "field `X` is Avro's long, and its column is string"),
        ("long", pa.array([None], pa.int64()), "NULL in field `X`"),
        ("int", pa.array([2**40]), "not in range"),
        (["string", "long"], pa.array([1]), "a union of"),
        ({"type": "fixed", "name": "f", "size": 2}, pa.array([b"ab"]), "field `X` is Avro's fixed"),
        ({"type": "array", "items": "long"}, pa.array([[None]], pa.list_(pa.int64())), "NULL in field `X`"),
    ],
)
def test_what_does_not_fit(type_: Any, values: pa.Array, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        encode_avro(pa.table({"x": values}), record(type_))


def test_what_avro_does_not_have() -> None:
    with pytest.raises(ValueError, match="column `a b` has no name for Avro"):
        avro_schema("v", pa.schema([("a b", pa.int64())]))
    with pytest.raises(ValueError, match="which Avro does not have"):
        avro_schema("v", pa.schema([("m", pa.map_(pa.int64(), pa.int64()))]))
    with pytest.raises(ValueError, match="field `X` has no column"):
        encode_avro(pa.table({"y": [1]}), record("long"))

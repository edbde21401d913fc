"""Avro records written one value after the other by the letter of the specification come back as columns."""

from __future__ import annotations

import json
import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.formats.avro.avro_reader import decode_avro, fields_of

LONGS = st.integers(-(2**63), 2**63 - 1)
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "n", "type": "int"}, {"name": "t", "type": "string"}]}
FIELDS: list[tuple[str, Any, st.SearchStrategy[Any]]] = [
    ("id", "long", LONGS),
    ("small", "int", st.integers(-(2**31), 2**31 - 1)),
    ("is_open", "boolean", st.booleans()),
    ("rate", "double", st.floats(allow_nan=False)),
    ("short", "float", st.floats(allow_nan=False, width=32)),
    ("name", ["null", "string"], st.none() | st.text()),
    ("raw", ["bytes", "null"], st.none() | st.binary()),
    ("item", ITEM, st.fixed_dictionaries({"n": st.integers(-5, 5), "t": st.text(max_size=3)})),
    ("items", {"type": "array", "items": "Item"}, st.lists(st.fixed_dictionaries({"n": st.just(1), "t": st.text()}))),
    ("tags", {"type": "map", "values": "long"}, st.dictionaries(st.text(), LONGS)),
    ("nested", {"type": "array", "items": {"type": "array", "items": ["null", "long"]}}, st.lists(st.lists(LONGS))),
    ("colour", {"type": "enum", "name": "Colour", "symbols": ["red", "green"]}, st.sampled_from(["red", "green"])),
    ("pair", {"type": "fixed", "name": "Pair", "size": 2}, st.binary(min_size=2, max_size=2)),
]
SCHEMA = {"type": "record", "name": "All", "fields": [{"name": name, "type": type_} for name, type_, _ in FIELDS]}


def number(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    result = b""
    while rest >= 0x80:
        result += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return result + bytes([rest])


def encoded(type_: Any, value: Any) -> bytes:
    """A value as Avro, by the letter."""
    if isinstance(type_, list):
        at = type_.index("null") if value is None else next(i for i, each in enumerate(type_) if each != "null")
        return number(at) + (b"" if value is None else encoded(type_[at], value))
    kind = type_["type"] if isinstance(type_, dict) else type_
    if kind == "Item":
        return encoded(ITEM, value)
    if kind == "record":
        return b"".join(encoded(field["type"], value[field["name"]]) for field in type_["fields"])
    if kind == "array":
        parts = [encoded(type_["items"], each) for each in value]
        first = number(-len(parts[:2])) + number(sum(map(len, parts[:2]))) + b"".join(parts[:2]) if parts else b""
        return first + (number(len(parts[2:])) + b"".join(parts[2:]) if parts[2:] else b"") + number(0)
    if kind == "map":
        parts = [encoded("string", key) + encoded(type_["values"], each) for key, each in value.items()]
        return (number(len(parts)) + b"".join(parts) if parts else b"") + number(0)
    if kind == "enum":
        return number(type_["symbols"].index(value))
    if kind in ("string", "bytes"):
        held = value.encode() if isinstance(value, str) else value
        return number(len(held)) + held
    plain = {"boolean": "<?", "float": "<f", "double": "<d"}
    return struct.pack(plain[kind], value) if kind in plain else value if kind == "fixed" else number(value)


@given(st.lists(st.fixed_dictionaries({name: values for name, _, values in FIELDS}), min_size=1, max_size=6))
def test_all_types(rows: list[dict[str, Any]]) -> None:
    table = decode_avro(pa.array([encoded(SCHEMA, row) for row in rows], pa.binary()), json.dumps(SCHEMA))
    expected = [{**row, "tags": list(row["tags"].items())} for row in rows]
    assert table.to_pylist() == expected
    table.validate(full=True)


def schema_of(type_: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": type_}]})


EPOCH = datetime(1970, 1, 1)
CENTS = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
WHOLE = {"type": "fixed", "name": "D", "size": 3, "logicalType": "decimal", "precision": 4}


def long(meaning: str) -> Any:
    return {"type": "long", "logicalType": meaning}


@pytest.mark.parametrize(
    ("type_", "bytes_", "expected"),
    [
        ({"type": "int", "logicalType": "date"}, number(1), date(1970, 1, 2)),
        (long("timestamp-millis"), number(1), (EPOCH + timedelta(milliseconds=1)).replace(tzinfo=timezone.utc)),
        (long("timestamp-micros"), number(-1), (EPOCH - timedelta(microseconds=1)).replace(tzinfo=timezone.utc)),
        (long("local-timestamp-millis"), number(0), EPOCH),
        (CENTS, number(1) + b"\xff", Decimal("-0.01")),
        (CENTS, number(2) + b"\x01\x00", Decimal("2.56")),
        (WHOLE, b"\xff\xff\xfe", Decimal("-2")),
        ({"type": "string", "logicalType": "uuid"}, number(1) + b"u", "u"),
    ],
)
def test_logical_types(type_: Any, bytes_: bytes, expected: Any) -> None:
    values = pa.array([b"zzz", bytes_, bytes_], pa.binary())[1:]  # a slice: bytes before it are not read
    assert decode_avro(values, schema_of(type_)).column("x").to_pylist() == [expected, expected]


@pytest.mark.parametrize(
    ("type_", "bytes_", "reason"),
    [
        ("long", b"", "ends in the middle"),
        ("long", b"\x80", "ends in the middle"),
        ("long", b"\xff" * 11, "more than ten bytes"),
        ("int", number(2**40), "not in range"),
        ("string", number(5) + b"abc", "ends in the middle"),
        ("string", number(-5), "ends in the middle"),
        ("string", number(1) + b"\xff", "UTF8"),
        ("boolean", b"\x02", "no such boolean"),
        ("long", number(1) + b"x", "left over"),
        (["null", "long"], number(2), "no such branch"),
        ({"type": "array", "items": "long"}, number(2**40), "more items than"),
        ({"type": "enum", "name": "E", "symbols": ["a"]}, number(1), "no such symbol"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, number(0), "no bytes"),
    ],
)
def test_what_is_not_what_the_schema_says(type_: Any, bytes_: bytes, reason: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=reason):
        decode_avro(pa.array([bytes_], pa.binary()), schema_of(type_))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "Expecting property name"),
        ('"long"', "is not a record"),
        (schema_of(["long", "string"]), "a union of"),
        (schema_of("Unknown"), "`Unknown` is not known"),
        (schema_of(["null", "R"]), "`R` contains itself"),
    ],
)
def test_schemas_that_are_refused(schema: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        fields_of(schema)

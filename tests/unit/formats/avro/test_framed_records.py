"""Framed Avro records: each is decoded by the schema of its id, and rows keep their order."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.formats.avro.avro_writer import encode_avro
from rejoinder.formats.avro.framed_records import decode_framed, frame_faults

CENTS = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
PLACE = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}
WIDE_PLACE = {**PLACE, "fields": [{"name": "Y", "type": "string"}, *PLACE["fields"]]}


def record(**fields: Any) -> str:
    listed = [{"name": name, "type": type_} for name, type_ in fields.items()]
    return json.dumps({"type": "record", "name": "R", "fields": listed})


def framed(number: int, schema: str, columns: pa.Schema, row: dict[str, Any]) -> bytes:
    table = pa.Table.from_pylist([row], columns)
    value: bytes = encode_avro(table, schema, b"\0" + number.to_bytes(4, "big"))[0].as_py()
    return value


SCHEMAS = {
    1: (record(id="int"), pa.schema([("id", pa.int32())])),
    300: (record(name="string", ID="long"), pa.schema([("name", pa.string()), ("ID", pa.int64())])),
    2**31 - 1: (record(gone="double", name="bytes"), pa.schema([("gone", pa.float64()), ("name", pa.binary())])),
}
COLUMNS = [pa.field("id", pa.float64()), pa.field("name", pa.string())]
ROWS = st.one_of(
    st.tuples(st.just(1), st.fixed_dictionaries({"id": st.integers(-5, 5)})),
    st.tuples(st.just(300), st.fixed_dictionaries({"ID": st.integers(-5, 5), "name": st.text()})),
    st.tuples(st.just(2**31 - 1), st.fixed_dictionaries({"gone": st.just(0.5), "name": st.just(b"x")})),
)


@given(st.lists(ROWS, min_size=1, max_size=12))
def test_rows_of_several_schemas_keep_their_order(rows: list[tuple[int, dict[str, Any]]]) -> None:
    values = pa.array([b"before", *(framed(each, *SCHEMAS[each], row) for each, row in rows)], pa.binary())[1:]
    schemas = {each: text for each, (text, _) in SCHEMAS.items()}
    assert frame_faults(values, schemas) == {}
    expected = [
        {"id": row.get("id", row.get("ID")), "name": "x" if number == 2**31 - 1 else row.get("name")}
        for number, row in rows
    ]
    table = decode_framed(values, schemas, COLUMNS)
    assert table.to_pylist() == expected and table.schema == pa.schema(COLUMNS)
    table.validate(full=True)


@pytest.mark.parametrize(
    ("type_", "bytes_", "kind", "expected"),
    [
        ("int", b"\x02", pa.int64(), 1),
        ("int", b"\x02", pa.float32(), 1.0),
        ("long", b"\x02", pa.float64(), 1.0),
        ("float", b"\x00\x00\x00\x3f", pa.float64(), 0.5),
        ("string", b"\x02a", pa.binary(), b"a"),
        ("bytes", b"\x02a", pa.string(), "a"),
        ("int", b"\x02", pa.decimal128(12, 2), Decimal("1.00")),
        (CENTS, b"\x02\x01", pa.decimal128(6, 2), Decimal("0.01")),
        (PLACE, b"\x02", pa.struct([("x", pa.int64()), ("Y", pa.string())]), {"x": 1, "Y": None}),
        (WIDE_PLACE, b"\x02a\x02", pa.struct([("x", pa.int64())]), {"x": 1}),
        ({"type": "array", "items": PLACE}, b"\x02\x02\x00", pa.list_(pa.struct([("x", pa.int64())])), [{"x": 1}]),
    ],
)
def test_a_field_is_read_as_its_column(type_: Any, bytes_: bytes, kind: pa.DataType, expected: Any) -> None:
    values = pa.array([b"\0\0\0\0\7" + bytes_], pa.binary())
    assert decode_framed(values, {7: record(v=type_)}, [pa.field("v", kind)]).to_pylist() == [{"v": expected}]


@pytest.mark.parametrize(
    ("type_", "bytes_", "kind", "reason"),
    [
        ("long", b"\x80\x80\x80\x80\x10", pa.int32(), "`v` does not fit its column: declared int32, found int64"),
        ("bytes", b"\x02\xff", pa.string(), "declared string, found binary: [Ii]nvalid UTF8"),
        ("long", b"", pa.int64(), "ends in the middle of a value"),
        ("int", b"\x02\x02", pa.int64(), "bytes are left over"),
    ],
)
def test_what_does_not_fit(type_: Any, bytes_: bytes, kind: pa.DataType, reason: str) -> None:
    values = pa.array([b"\0\0\0\0\7" + bytes_], pa.binary())
    with pytest.raises(pa.ArrowInvalid, match=reason):
        decode_framed(values, {7: record(v=type_)}, [pa.field("v", kind)])


def test_records_without_a_declared_schema_are_named() -> None:
    values = [b"\0\0\0\0\7", b"\0\0\0\1\0", b"\1\0\0\0\7", b"\0\0\0\7", b"", b"\0\xff\xff\xff\xff"]
    faults = frame_faults(pa.array(values, pa.binary()), {7: "", 8: ""})
    assert faults[1] == "schema id 256 is not declared (declared: 7, 8); add option `avro_schema.256` with its schema"
    assert all("does not begin with a zero byte and a schema id" in faults[at] for at in (2, 3, 4))
    assert "schema id 4294967295" in faults[5] and list(faults) == [1, 2, 3, 4, 5]
    (fault,) = frame_faults(pa.array(values[:1], pa.binary()), {}).values()
    assert "schema id 7 is not declared (declared: none)" in fault

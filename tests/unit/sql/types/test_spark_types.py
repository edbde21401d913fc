"""Spark's types as text and as Arrow, and what becomes of two of them together."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rejoinder import errors
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.spark_types import common_type, comparable, key_type, parse_type, spark_name


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("BOOLEAN", pa.bool_(), "boolean"),
        ("TINYINT", pa.int8(), "tinyint"),
        ("byte", pa.int8(), "tinyint"),
        ("smallint", pa.int16(), "smallint"),
        ("short", pa.int16(), "smallint"),
        ("INT", pa.int32(), "int"),
        ("integer", pa.int32(), "int"),
        ("BIGINT", pa.int64(), "bigint"),
        ("long", pa.int64(), "bigint"),
        ("FLOAT", pa.float32(), "float"),
        ("real", pa.float32(), "float"),
        ("DOUBLE", pa.float64(), "double"),
        ("DECIMAL", pa.decimal128(10, 0), "decimal(10,0)"),
        ("dec(5)", pa.decimal128(5, 0), "decimal(5,0)"),
        ("NUMERIC(38, 18)", pa.decimal128(38, 18), "decimal(38,18)"),
        ("STRING", pa.string(), "string"),
        ("VARCHAR", pa.string(), "string"),
        ("CHAR", pa.string(), "string"),
        ("BINARY", pa.binary(), "binary"),
        ("DATE", pa.date32(), "date"),
        ("TIMESTAMP", pa.timestamp("us", tz="UTC"), "timestamp"),
        ("timestamp_ltz", pa.timestamp("us", tz="UTC"), "timestamp"),
        ("TIMESTAMP_NTZ", pa.timestamp("us"), "timestamp_ntz"),
        ("ARRAY<INT>", pa.list_(pa.field("element", pa.int32())), "array<int>"),
        ("MAP<STRING, DOUBLE>", pa.map_(pa.string(), pa.float64()), "map<string,double>"),
        (
            "STRUCT<a: INT, b: ARRAY<STRING>>",
            pa.struct([("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.string())))]),
            "struct<a:int,b:array<string>>",
        ),
        ("struct<a int>", pa.struct([("a", pa.int32())]), "struct<a:int>"),
    ],
)
def test_a_type_and_its_name(text: str, kind: pa.DataType, name: str) -> None:
    assert parse_type(text) == kind
    assert spark_name(kind) == name
    assert parse_type(name) == kind


@pytest.mark.parametrize(
    "text", ["VARIANT", "INTERVAL", "INTERVAL DAY", "TIME(3)", "GEOMETRY", "DECIMAL(39,2)", "DECIMAL(5,6)"]
)
def test_a_type_that_is_not_supported_is_refused_by_name(text: str) -> None:
    with pytest.raises(errors.Unsupported) as refusal:
        parse_type(text)
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        *((text, f"the type `{text}` is not supported") for text in ("DATETIME", "UUID")),
        ("ARRAY<UUID>", "the type `UUID` is not supported"),
        ("VARCHAR(10)", "the length of `VARCHAR(10)` is not supported"),
        ("STRUCT<a: CHAR(3)>", "the length of `CHAR(3)` is not supported"),
    ],
)
def test_a_type_is_called_as_it_was_written(text: str, fact: str) -> None:
    with pytest.raises(errors.Unsupported) as refusal:
        parse_type(text)
    assert refusal.value.fact == fact and refusal.value.hint


@pytest.mark.parametrize("text", ["", "nosuch", "ARRAY<", "INT INT"])
def test_what_is_no_type_is_invalid(text: str) -> None:
    with pytest.raises(errors.InvalidSql):
        parse_type(text)


@pytest.mark.parametrize("kind", [pa.uint8(), pa.timestamp("ns"), pa.large_string(), pa.duration("ms")])
def test_an_arrow_type_that_spark_has_not_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(errors.Unsupported, match=r"Arrow type"):
        spark_name(kind)


TOGETHER = [
    ("int", "int", "int"),
    ("tinyint", "smallint", "smallint"),
    ("int", "bigint", "bigint"),
    ("int", "float", "double"),
    ("bigint", "double", "double"),
    ("float", "double", "double"),
    ("int", "decimal(10,2)", "decimal(12,2)"),
    ("bigint", "decimal(10,2)", "decimal(22,2)"),
    ("decimal(10,2)", "decimal(4,3)", "decimal(11,3)"),
    ("decimal(38,0)", "decimal(38,18)", "decimal(38,0)"),
    ("decimal(30,0)", "decimal(38,18)", "decimal(38,8)"),
    ("decimal(10,2)", "double", "double"),
    ("decimal(10,2)", "float", "double"),
    ("string", "int", "bigint"),
    ("string", "double", "double"),
    ("string", "decimal(10,2)", "double"),
    ("string", "boolean", "boolean"),
    ("string", "date", "date"),
    ("string", "timestamp", "timestamp"),
    ("date", "timestamp", "timestamp"),
    ("date", "timestamp_ntz", "timestamp_ntz"),
    ("timestamp", "timestamp_ntz", "timestamp"),
    ("array<int>", "array<bigint>", "array<bigint>"),
    ("struct<a:int>", "struct<a:double>", "struct<a:double>"),
]


@pytest.mark.parametrize(("left", "right", "together"), TOGETHER)
def test_two_types_meet_as_in_spark(left: str, right: str, together: str) -> None:
    one, two = parse_type(left), parse_type(right)
    assert spark_name(common_type(one, two)) == together
    assert common_type(two, one) == common_type(one, two)
    assert comparable(one, two)


def test_null_takes_the_other_type() -> None:
    assert common_type(pa.null(), spark_types.DATE) == spark_types.DATE
    assert common_type(spark_types.DATE, pa.null()) == spark_types.DATE


@pytest.mark.parametrize(
    ("left", "right"),
    [("int", "boolean"), ("date", "int"), ("binary", "int"), ("array<int>", "int"), ("struct<a:int>", "struct<b:int>")],
)
def test_types_that_do_not_meet(left: str, right: str) -> None:
    one, two = parse_type(left), parse_type(right)
    assert not comparable(one, two)
    with pytest.raises(errors.TypeMismatch, match="no common type"):
        common_type(one, two)


def test_maps_are_not_comparable() -> None:
    kind = parse_type("map<string,int>")
    assert not comparable(kind, kind)
    assert not comparable(spark_types.array_of(kind), spark_types.array_of(kind))


@pytest.mark.parametrize(
    ("left", "right", "key"),
    [
        ("int", "int", "bigint"),
        ("tinyint", "bigint", "bigint"),
        ("int", "double", "double"),
        ("float", "float", "double"),
        ("float", "double", "double"),
        ("decimal(10,2)", "decimal(12,4)", "decimal(12,4)"),
        ("int", "decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "double", "double"),
        ("date", "timestamp", "timestamp"),
        ("string", "string", "string"),
        ("boolean", "boolean", "boolean"),
    ],
)
def test_keys_hash_as_one_type(left: str, right: str, key: str) -> None:
    assert spark_name(key_type(parse_type(left), parse_type(right))) == key
    assert spark_name(key_type(parse_type(right), parse_type(left))) == key


@pytest.mark.parametrize(
    ("left", "right"),
    [("string", "int"), ("date", "string"), ("int", "boolean"), ("map<string,int>", "map<string,int>")],
)
def test_keys_that_cannot_be_equal_name_both_sides(left: str, right: str) -> None:
    with pytest.raises(errors.TypeMismatch) as refusal:
        key_type(parse_type(left), parse_type(right), names=("o.id", "d.order_id"))
    assert "`o.id` and `d.order_id`" in refusal.value.fact
    assert left in refusal.value.fact
    assert right in refusal.value.fact
    assert "CAST" in str(refusal.value.hint)


def test_the_result_of_an_operation_is_cut_at_38_digits_as_spark_does() -> None:
    assert spark_types.adjusted_decimal(20, 4) == pa.decimal128(20, 4)
    assert spark_types.adjusted_decimal(39, 10) == pa.decimal128(38, 9)
    assert spark_types.adjusted_decimal(60, 40) == pa.decimal128(38, 18)
    assert spark_types.adjusted_decimal(77, 20) == pa.decimal128(38, 6)

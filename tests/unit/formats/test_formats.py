"""Files: what is read, what is refused with its place, and what is diverted."""

from __future__ import annotations

import gzip
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.errors import EvaluationError, InvalidSql, MalformedInput, SchemaChanged
from rejoinder.testing import Driver
from tests.unit.connectors.kafka.test_topic_records import read
from tests.unit.formats.input_folder import Folder


def test_a_flipped_byte_in_a_parquet_page(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "parquet")
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table({"id": range(999), "n": pa.array(range(999), pa.int32())}), path, write_page_checksum=True)
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes([whole[200] ^ 64]) + whole[201:])
    folder.refuses(MalformedInput, "cannot be read as Parquet", "1.parquet")
    path.write_bytes(whole)
    assert len(folder.rows()) == 999


@pytest.mark.parametrize("length", [0, 3, 100, -1])
def test_a_truncated_parquet_file(tmp_path: Path, length: int) -> None:
    folder = Folder(tmp_path, "parquet")
    path = folder.put(pa.table({"id": [1], "n": pa.array([1], pa.int32())}))
    path.write_bytes(path.read_bytes()[:length])
    folder.refuses(MalformedInput, "cannot be read as Parquet", "1.parquet")


@pytest.mark.parametrize(
    "column",
    [["x"], ["1"], [b"1"], [2**31], [1.5], [[1]], [{"a": 1}], [True], [pa.scalar(1, pa.date32()).as_py()]],
    ids=repr,
)
def test_a_column_of_another_type(tmp_path: Path, column: list[Any]) -> None:
    folder = Folder(tmp_path, "parquet")
    folder.put(pa.table({"id": [3], "n": column}))
    folder.refuses(SchemaChanged, "column `n` of `s` does not fit its declared type", "declared int32, found")


@pytest.mark.parametrize(
    ("declared", "column", "expected"),
    [
        ("INT", pa.array([7, None], pa.int64()), [None, 7]),
        ("INT", pa.array([7.0]), [7]),
        ("DOUBLE", pa.array([7], pa.int8()), [7.0]),
        ("STRING", pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        ("STRING", pa.array([b"a"], pa.large_binary()), ["a"]),
        ("BINARY", pa.array(["a"]), [b"a"]),
        ("BIGINT", pa.nulls(1), [None]),
        ("ARRAY<BIGINT>", pa.array([[1, None]], pa.large_list(pa.int32())), [[1, None]]),
        ("STRUCT<x: BIGINT>", pa.array([{"x": 1}], pa.struct([("x", pa.int32())])), [{"x": 1}]),
    ],
    ids=str,
)
def test_a_column_that_fits_without_loss(tmp_path: Path, declared: str, column: pa.Array, expected: list[Any]) -> None:
    folder = Folder(tmp_path, "parquet", f"c {declared}")
    folder.put(pa.table({"C": column}))
    assert [row["c"] for row in folder.rows()] == expected


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 3, "n": ',
        '{"id": "three"}',
        "[1]",
        '{"id": 1.5}',
        '{"id": 3} {"id": 4}',
        '{"id": 3} {"more":',
        '{"n": 2147483648}',
        "x",
        "null",
        '{"id": 3} null',
        '{"id": 3} null {"id": 4}',
    ],
)
def test_a_malformed_json_line(tmp_path: Path, line: str) -> None:
    folder = Folder(tmp_path, "json")
    path = folder.put('{"id": 5}\n\n' + line + '\n{"id": 6}\n')
    folder.refuses(MalformedInput, f"line 3 of `{path}` of `s` is malformed", "malformed 'divert'")


@pytest.mark.parametrize("format_", ["json", "csv"])
def test_text_that_is_not_utf8(tmp_path: Path, format_: str) -> None:
    line = {"json": b'{"b": "%s"}\n', "csv": b"%s\n"}[format_]
    folder = Folder(tmp_path, format_, "b STRING", malformed="divert")
    folder.put(line % b"\xff" + line % "ü".encode())
    assert folder.rows() == [{"b": "ü"}]
    assert [(row["line"], row["text"]) for row in folder.driver.table("s.rejected")] == [
        (1, (line % b"\xff").decode(errors="replace").rstrip())
    ]


@pytest.mark.parametrize(("declared", "wrap"), [("STRING", False), ("ARRAY<STRING>", True)])
def test_a_parquet_file_with_text_that_is_not_utf8(tmp_path: Path, declared: str, wrap: bool) -> None:
    folder = Folder(tmp_path, "parquet", f"b {declared}")
    text = pa.array([b"\xff"]).view(pa.string())
    folder.put(pa.table({"b": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), text) if wrap else text}))
    folder.refuses(MalformedInput, "column `b` of `s` contains an invalid value of its type", "1.parquet", "UTF8")


def test_null_lines_are_no_records(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "json", malformed="divert")
    folder.put('null\n{"id": 1}\nnull\n{"id": \n\n null\n{"id": 2}')
    assert [row["id"] for row in folder.rows()] == [1, 2]
    assert [row["line"] for row in folder.driver.table("s.rejected")] == [1, 3, 4, 6]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path: Path, end: str) -> None:
    folder = Folder(tmp_path, "json", malformed="divert")
    folder.put("\ufeff" + end.join(['  {"id": 1}  ', "", "x", '{"id": 2}']))
    assert [row["id"] for row in folder.rows()] == [1, 2]
    assert [(row["line"], row["text"]) for row in folder.driver.table("s.rejected")] == [(3, "x")]


def test_a_json_record_over_several_lines(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "json")
    folder.put('{"id":\n5}\n')
    folder.refuses(MalformedInput, "line 1 of")


def test_json_without_a_last_line_end_and_with_empty_lines(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "json")
    folder.put('\n{"id": 1}\r\n\r\n  \n{"n": 2, "more": {}}')
    folder.put("", "2")
    assert folder.rows() == [{"id": None, "n": 2}, {"id": 1, "n": None}]


@pytest.mark.parametrize(
    ("declared", "text", "expected"),
    [
        ("BINARY", '"AGE="', b"\x00a"),
        ("ARRAY<STRUCT<b: BINARY>>", '[{"b": "/w=="}, null, {}]', [{"b": b"\xff"}, None, {"b": None}]),
        ("DOUBLE", '"-Infinity"', float("-inf")),
        ("ARRAY<FLOAT>", '["Infinity", 1.5]', [float("inf"), 1.5]),
        ("STRUCT<d: DATE, t: TIMESTAMP>", '{"d": "2026-01-01", "more": 1}', {"d": date(2026, 1, 1), "t": None}),
        ("MAP<STRING, BIGINT>", '{"a": 1, "b": null}', {"a": 1, "b": None}),
        ("MAP<INT, STRUCT<b: BINARY, d: DATE>>", '{"1": {"b": "YQ=="}}', {1: {"b": b"a", "d": None}}),
        ("DECIMAL(20, 2)", "123456789012345678.12", Decimal("123456789012345678.12")),
    ],
)
@pytest.mark.parametrize("source", ["file", "topic"])
def test_a_json_value_of_any_type(tmp_path: Path, declared: str, text: str, expected: Any, source: str) -> None:
    lines = [f'{{"id": 1, "x": {text}}}', '{"id": 2}', '{"id": 3, "x": null}']
    columns = f"id BIGINT, x {declared}"
    if source == "file":
        folder = Folder(tmp_path, "json", columns)
        folder.put("\n".join(["", *lines, ""]))
        rows = folder.rows()
    else:
        rows = read(f"STREAM s ({columns})", *[(None, line.replace(",", ",\n").encode()) for line in lines])
    found = [dict(row["x"]) if isinstance(expected, dict) and row["x"] else row["x"] for row in rows]
    assert found == [expected, None, None]


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("BINARY", '"no base64"'),
        ("DOUBLE", '"many"'),
        ("MAP<STRING, BIGINT>", '{"a": 1.5}'),
        ("MAP<STRING, BIGINT>", "[]"),
        ("STRUCT<d: DATE>", '{"d": "tomorrow"}'),
        ("DECIMAL(4, 2)", "1.238"),
    ],
)
def test_a_json_value_that_does_not_fit(tmp_path: Path, declared: str, text: str) -> None:
    folder = Folder(tmp_path, "json", f"x {declared}")
    path = folder.put(f'{{"x": null}}\n{{"x": {text}}}\n')
    folder.refuses(MalformedInput, f"line 2 of `{path}` of `s` is malformed")


@pytest.mark.parametrize(
    ("format_", "text", "reason"),
    [
        ("csv", "1,2\nthree,4\n", "a value of column `id` cannot be read as int64"),
        ("csv", "1,9999999999\n", "a value of column `n` cannot be read as int32"),
        ("json", '{"id": "x"}\n', "field `id` is a string where a number is expected"),
        ("json", '[\n{"id": 1}\n]\n', "one object on each line"),
    ],
)
def test_the_reason_names_the_column(tmp_path: Path, format_: str, text: str, reason: str) -> None:
    folder = Folder(tmp_path, format_)
    folder.put(text)
    folder.refuses(MalformedInput, f"Detail: {reason}" if "object" not in reason else reason, "Values: hidden")


@pytest.mark.parametrize(
    ("format_", "options", "text", "bad"),
    [
        ("json", {}, '{{"id": 1}}\n{}\n{{"id": 2}}\n{}\n', ["x", '{"n": "y"}']),
        (
            "json",
            {"op": "op"},
            '{{"id": 1, "op": "c"}}\n{}\n{{"id": 2, "op": "c"}}\n{}\n',
            ['{"id": 3}', '{"id": 3, "op": "x"}'],
        ),
        ("csv", {"op": "op"}, "1,1,c\n{}\n2,2,c\n{}\n", ["3,3,x", "3,3,"]),
        ("csv", {}, "1,1\n{}\n2,2\n{}\n", ["1,2,3", "x,1"]),
        ("csv", {"header": "true", "sep": ";", "nullValue": "-"}, "id;n\n1;-\n{}\n2;2\n{}\n", ["1;2;3", "x;-"]),
    ],
    ids=["json", "json with op", "csv with op", "csv", "csv with options"],
)
def test_malformed_lines_are_diverted(
    tmp_path: Path, format_: str, options: dict[str, str], text: str, bad: list[str]
) -> None:
    folder = Folder(tmp_path, format_, malformed="divert", **options)
    path = folder.put(text.format(*bad))
    assert [row["id"] for row in folder.rows()] == [1, 2]
    first = 3 if "header" in options else 2
    rejected = folder.driver.table("s.rejected")
    assert [(row["file"], row["line"], row["text"]) for row in rejected] == [
        (str(path), first, bad[0]),
        (str(path), first + 2, bad[1]),
    ]
    assert all(row["reason"] for row in rejected)


def test_lines_whose_diff_is_no_count_are_diverted(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "json", "id BIGINT", diff="d", malformed="divert")
    folder.put('{"id": 1, "d": 2}\n{"id": 2, "d": 9223372036854775807}\n{"id": 3}\n{"id": 4, "d": 1.5}\n')
    assert [row["id"] for row in folder.rows()] == [1, 1]
    assert [row["line"] for row in folder.driver.table("s.rejected")] == [2, 3, 4]


@pytest.mark.parametrize(("op", "told"), [("x", "an op of `s` is unknown"), (None, "NULL in the op column `op`")])
def test_an_op_that_is_not_known(tmp_path: Path, op: str | None, told: str) -> None:
    folder = Folder(tmp_path, "parquet", "id BIGINT, op STRING", op="op")
    folder.put(pa.table({"id": [3], "op": pa.array([op], pa.string())}))
    folder.refuses(MalformedInput, told)


def test_a_missing_op_column(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "parquet", "id BIGINT, op STRING", op="op")
    folder.put(pa.table({"id": [3]}))
    folder.refuses(SchemaChanged, "column `op` of `s` is missing")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id + 9223372036854775805 AS x FROM s",
        "SELECT 100 / (id - 3) AS x FROM s",
        "SELECT x.id FROM s x JOIN s y ON x.id = y.id AND CAST(x.id * 1000000000 AS INT) > 0",
    ],
    ids=["overflow", "division by zero", "in the condition of a join"],
)
def test_an_expression_that_fails(query: str) -> None:
    driver = Driver()
    driver.sql("CREATE CHANGELOG s (id BIGINT)")
    driver.sql(f"CREATE VIEW v AS {query}")
    driver.insert("s", {"id": 1})
    driver.step()
    driver.insert("s", {"id": 3})
    with pytest.raises(EvaluationError) as told:
        driver.step()
    assert told.value.detail and told.value.hint
    assert driver.epoch == 0 and len(driver.table("v")) == 1
    driver.insert("s", {"id": 2})
    driver.step()
    assert len(driver.table("v")) == 2


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\n\r\n b \rc", ["a", "", " b ", "c"]),
        (b'\xef\xbb\xbfa,"b\t\n', ['a,"b\t']),
        (b"", []),
    ],
)
def test_each_line_of_a_text_file_is_a_row(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    folder = Folder(tmp_path, "text", "line STRING")
    folder.put(content)
    assert sorted(row["line"] for row in folder.rows()) == sorted(lines)


def test_a_line_that_is_not_utf8_is_malformed_or_diverted(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "text", "line STRING")
    path = folder.put(b"good\nb\xff\nmore\n")
    folder.refuses(MalformedInput, "line 2", "1.text")
    path.unlink()
    diverting = Folder(tmp_path, "text", "line STRING", malformed="divert")
    diverting.put(b"good\nb\xff\nmore\n")
    assert [row["line"] for row in diverting.rows()] == ["good", "more"]
    assert [row["line"] for row in diverting.driver.sql("SELECT line FROM s.rejected")] == [2]


def test_a_compressed_text_file_and_columns_computed_from_its_lines(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "text", "line STRING, level AS split_part(line, ' ', 1)")
    (tmp_path / "1.log.gz").write_bytes(gzip.compress(b"WARN disk\nINFO up\n"))
    assert [row["level"] for row in folder.rows()] == ["INFO", "WARN"]


@pytest.mark.parametrize("columns", ["a STRING, b STRING", "a BIGINT"])
def test_a_text_source_has_one_column_of_type_string(tmp_path: Path, columns: str) -> None:
    with pytest.raises(InvalidSql, match="exactly one column of type STRING"):
        Folder(tmp_path, "text", columns)
    with pytest.raises(InvalidSql, match="exactly one column of type STRING"):
        Folder(tmp_path, "text", "a STRING, op STRING", op="op")

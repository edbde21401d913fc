"""JSON keys match columns without case; columns without any value in a file are reported once."""

from __future__ import annotations

import json
import math
import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.errors import MalformedInput
from rejoinder.formats.json.json_lines import parse_json
from rejoinder.testing import Driver
from tests.deep import seeds


def _parsed(text: str, schema: pa.Schema) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parse_json(text.encode(), schema).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        (['{"Name": "a"}', '{"NAME": "b"}', '{"name": "c"}'], ["a", "b", "c"]),
        (['{"name": "a", "NAME": "b"}', '{"NAME": "b", "name": "a"}'], ["a", "a"]),
        (['{"Name": null}', '{"NAME": "b"}'], [None, "b"]),
        (['{"x": "\\"Name\\": 1"}', '{"o": {"Name": 1}}', '{"x": "Name"}'], [None, None, None]),
    ],
)
def test_the_exact_key_goes_first_and_others_fill_the_column(lines: list[str], values: list[str | None]) -> None:
    rows = _parsed("\n".join(lines), pa.schema([("name", pa.string())]))
    assert [row["name"] for row in rows] == values


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.map_(pa.string(), pa.int32()), '{"Col": {"A": 1}}', [("A", 1)]),
        (pa.struct([("x", pa.int32())]), '{"COL": {"x": 1}}', {"x": 1}),
        (pa.list_(pa.int32()), '{"cOl": [1, 2]}', [1, 2]),
        (pa.binary(), '{"COL": "aGk="}', b"hi"),
    ],
)
def test_columns_of_every_type_are_filled(kind: pa.DataType, text: str, value: object) -> None:
    rows = _parsed(f'{text}\n{{"other": 1}}', pa.schema([("col", kind)]))
    assert [row["col"] for row in rows] == [value, None]


def test_fields_of_structs_are_filled_at_every_level() -> None:
    inner = pa.struct([("city", pa.string()), ("zip", pa.int32())])
    schema = pa.schema([("id", pa.int32()), ("place", inner), ("past", pa.list_(inner))])
    lines = [
        '{"id": 1, "place": {"city": "a", "ZIP": 1}, "past": [{"City": "b", "zip": 2}, null, {"CITY": "c"}]}',
        '{"ID": 2, "Place": {"CITY": "d", "zip": 3}}',
        '{"id": 3, "place": null, "past": []}',
        '{"id": 4, "place": {"city": "e", "City": "f"}, "PAST": [{"zip": 4}]}',
    ]
    assert _parsed("\n".join(lines), schema) == [
        {
            "id": 1,
            "place": {"city": "a", "zip": 1},
            "past": [{"city": "b", "zip": 2}, None, {"city": "c", "zip": None}],
        },
        {"id": 2, "place": {"city": "d", "zip": 3}, "past": None},
        {"id": 3, "place": None, "past": []},
        {"id": 4, "place": {"city": "e", "zip": None}, "past": [{"city": None, "zip": 4}]},
    ]
    with pytest.raises(pa.ArrowInvalid, match="`CITY` and `City` differ in case only"):
        _parsed('{"place": {"CITY": "a", "City": "b"}}', schema)


def test_many_names_are_searched_in_groups() -> None:
    names = [f"some_long_column_name_{number}" for number in range(200)]
    schema = pa.schema([(name, pa.int32()) for name in names])
    (row,) = _parsed(f'{{"{names[0]}": 1, "{names[-1].upper()}": 2}}', schema)
    assert {name: value for name, value in row.items() if value is not None} == {names[0]: 1, names[-1]: 2}


@pytest.mark.parametrize("seed", seeds(30, times=1))
def test_any_spelling_is_found(seed: int) -> None:
    draw = random.Random(seed)
    names = ["".join(draw.choices("aB.$_ é", k=draw.randrange(1, 5))) + str(at) for at in range(5)]
    spelled = {name: "".join(draw.choice([c, c.swapcase() if c.isascii() else c]) for c in name) for name in names}
    row = {spelling: at for at, spelling in enumerate(spelled.values()) if draw.random() < 0.7}
    (found,) = _parsed(json.dumps(row, ensure_ascii=False), pa.schema([(name, pa.int32()) for name in names]))
    assert found == {name: row.get(spelled[name]) for name in names}


def test_a_float_that_is_text_is_filled() -> None:
    first, second = _parsed('{"COL": "NaN"}\n{"col": 1.5}', pa.schema([("col", pa.float64())]))
    assert math.isnan(first["col"]) and second["col"] == 1.5


def test_two_keys_that_differ_in_case_only_are_refused_unless_one_is_exact() -> None:
    with pytest.raises(pa.ArrowInvalid, match="`NAME` and `Name` differ in case only"):
        _parsed('{"Name": "a", "NAME": "b"}', pa.schema([("name", pa.string())]))


def _driver(tmp_path: Path) -> Driver:
    (tmp_path / "data").mkdir()
    driver = Driver()
    driver.sql(
        f"CREATE STREAM f (id INT, name STRING, note STRING) USING json OPTIONS (path '{tmp_path / 'data'}');"
        "CREATE VIEW v AS SELECT * FROM f"
    )
    return driver


def test_files_with_other_cases_are_read_and_a_double_key_is_a_malformed_line(tmp_path: Path) -> None:
    driver = _driver(tmp_path)
    (tmp_path / "data" / "a.json").write_text('{"ID": 1, "Name": "a", "note": "x"}\n{"id": 2, "NAME": "b"}\n')
    assert [row for row, _ in driver.step()["v"]] == [
        {"id": 1, "name": "a", "note": "x"},
        {"id": 2, "name": "b", "note": None},
    ]
    (tmp_path / "data" / "b.json").write_text('{"id": 3, "note": "y"}\n{"id": 4, "Name": "a", "NAME": "b"}\n')
    with pytest.raises(MalformedInput, match=r"line 2 of .* is malformed"):
        driver.step()


def test_records_of_a_topic_match_without_case() -> None:
    from rejoinder.formats.json.json_lines import parse_values

    rows = parse_values(pa.array([b'{"ID": 1}', b'{"id": 2}']), pa.schema([("id", pa.int32())])).to_pylist()
    assert rows == [{"id": 1}, {"id": 2}]


def test_a_column_without_a_value_in_a_file_is_reported_once(tmp_path: Path) -> None:
    driver = _driver(tmp_path)
    (tmp_path / "data" / "a.json").write_text('{"id": 1, "nmae": "a", "note": "x"}\n{"id": 2, "nmae": "b"}\n')
    with pytest.warns(UserWarning, match="is NULL in every record") as raised:
        driver.step()
    (text,) = (str(each.message) for each in raised)
    assert "column `name` of `f` is NULL in every record of " in text and text.count("a.json") == 1
    (tmp_path / "data" / "b.json").write_text('{"id": 3, "nmae": "a", "note": "y"}\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        driver.step()
    (tmp_path / "data" / "c.json").write_text('{"id": 3, "name": "a"}\n')
    with pytest.warns(UserWarning, match=r"column `note` of `f` is NULL in every record of .*c\.json"):
        driver.step()

"""The table that expressions are compared on: every type, with the values that engines disagree about."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

_NAN, _INFINITY = float("nan"), float("inf")


def _date(days: int) -> pa.Scalar:
    """Make a date that Python has no word for."""
    return pa.scalar(days, pa.int32()).cast(pa.date32())


def _time(micros: int) -> pa.Scalar:
    return pa.scalar(micros, pa.int64()).cast(pa.timestamp("us", tz="UTC"))


_COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.bool_(), [True, False, None]),
    "c": (pa.bool_(), [True, True, True, False, False, False, None, None, None]),
    "i8": (pa.int8(), [0, 1, -1, 127, -128, None, 7]),
    "i16": (pa.int16(), [3, 0, 32767, -32768, None, -5]),
    "i": (pa.int32(), [1, 0, -1, 2147483647, -2147483648, None, 5, -7, 12, 3]),
    "j": (pa.int32(), [2, 3, -2, 1, -1, 0, None, 4]),
    "k": (pa.int32(), [0, 1, 2, 3, 4, 5, -1, -2, -3, 31, None]),
    "l": (pa.int64(), [0, 9223372036854775807, -9223372036854775808, None, 10, -3, 1, 2147483648, 1600000000]),
    "f": (pa.float32(), [0.0, -0.0, 1.5, -2.25, _NAN, _INFINITY, -_INFINITY, None, 3.4e38, 0.1, 16777217.0]),
    "d": (
        pa.float64(),
        [
            0.0,
            -0.0,
            1.0,
            2.5,
            -2.5,
            0.1,
            _NAN,
            _INFINITY,
            -_INFINITY,
            None,
            1e300,
            5e-324,
            1.005,
            -3.5,
            0.5,
            123456789.125,
            9.223372036854776e18,
            -9.223372036854776e18,
            2147483647.9,
            4000000000.0,
            -1e-07,
            0.3,
        ],
    ),
    "e": (pa.float64(), [2.0, 0.5, None, -1.0, 3.0, _NAN, 0.0, 1e-3, 100.0, 1.0, -0.5]),
    "dec": (pa.decimal128(10, 2), ["0.00", "1.50", "-1.50", None, "99999999.99", "-99999999.99", "0.01", "2.50"]),
    "tiny": (pa.decimal128(4, 3), ["1.005", "-1.005", "0.000", None, "9.999", "2.500", "-0.001"]),
    "wide": (
        pa.decimal128(38, 10),
        ["0.0000000000", "1.5000000000", None, "1234567890123456789.0123456789", "-7.0000000001"],
    ),
    "whole": (pa.decimal128(20, 0), ["0", "7", "-99999999999999999999", None, "9223372036854775808"]),
    "s": (
        pa.string(),
        [
            "",
            "a",
            "Hello World",
            "héllo",
            "日本語",
            "  pad ",
            None,
            "a%b_c",
            "back\\slash",
            "tab\tnew\nline",
            "😀x",
            "x,y,,z",
            "e\u0301",
            "AbC",
        ],
    ),
    "p": (pa.string(), ["a", "", "l", None, "lo", "本", " ", "b", "\\", "x", ",", "A"]),
    "n": (
        pa.string(),
        [
            "1",
            " 2 ",
            "-3",
            "+4",
            "5.5",
            "1e3",
            "abc",
            "",
            None,
            "2147483648",
            "9223372036854775808",
            "NaN",
            "-inf",
            "Infinity",
            "0x1F",
            "1_000",
            "-0",
            "00012",
            "\t7\n",
            "5.",
            ".5",
            "true",
            "T",
            "no",
            "-128",
            "1.005",
            "- 1",
            "1 2",
            ".",
            "1e400",
            "-1e-400",
            "\xa05",
            "+",
            "99999999.995",
            "0",
            "f",
            "Yes",
            "1.5e",
            "2.50",
            "12345678901234567890.5",
        ],
    ),
    "u": (
        pa.string(),
        [
            "2020-02-29",
            "2020-2-9",
            "2020",
            "2020-02",
            " 2020-01-01 ",
            "2021-02-29",
            "2020-01-01 10:11:12",
            "2020-01-01T10:11:12.123456",
            "2020-01-01 1:2:3",
            None,
            "",
            "abc",
            "0001-01-01",
            "9999-12-31 23:59:59.999999",
            "2020-01-01 10:11:12Z",
            "1582-10-10",
            "2020-01-01 10:11:12+02:00",
            "2020-01-01 10:11",
            "2020-13-01",
            "2020-01-01x",
            "20200101",
            "2020-01-01 24:00:00",
            "2020-01-01 10:11:12.1234567",
            "2020-01-01 10",
            "10000-01-01",
            "2020-01-01 00:00:00 UTC",
            "+2020-01-01",
            "2020/01/01",
            "epoch",
        ],
    ),
    "x": (pa.binary(), [b"", b"abc", None, b"\x00\xff", "é".encode()]),
    "dt": (
        pa.date32(),
        [
            date(2020, 2, 29),
            date(1970, 1, 1),
            date(1, 1, 1),
            date(9999, 12, 31),
            None,
            date(1582, 10, 4),
            date(1969, 12, 31),
            date(2021, 1, 3),
            date(2000, 12, 31),
            date(2024, 1, 31),
            date(1900, 3, 1),
            _date(10000000),
            _date(-800000),
        ],
    ),
    "dt2": (
        pa.date32(),
        [date(2020, 3, 1), date(1969, 7, 20), date(9999, 12, 31), None, date(1, 1, 1), date(2023, 8, 15)],
    ),
    "ts": (
        pa.timestamp("us", tz="UTC"),
        [
            datetime(2020, 2, 29, 23, 59, 59, 999999),
            datetime(1970, 1, 1),
            datetime(1, 1, 1),
            None,
            datetime(9999, 12, 31, 23, 59, 59, 999999),
            datetime(1969, 12, 31, 23, 59, 59, 500000),
            datetime(2021, 3, 28, 2, 30),
            datetime(1900, 6, 15, 12, 0, 0, 1),
            datetime(2024, 1, 31, 10, 20, 30, 120000),
            _time(900000000000000000),
            _time(-90000000000120000),
        ],
    ),
    "nt": (
        pa.timestamp("us"),
        [
            datetime(2020, 2, 29, 23, 59, 59, 999999),
            None,
            datetime(1970, 1, 1),
            datetime(1582, 10, 4),
            datetime(2021, 3, 28, 2, 30),
            datetime(9999, 12, 31, 23, 59, 59),
            datetime(1969, 12, 31, 23, 59, 59, 1),
        ],
    ),
    "js": (
        pa.string(),
        [
            '{"a": 1, "b": {"c": "x"}}',
            '{"a": [1, 2, {"b": 3}], "b": [{"c": 1}, {"c": null}, {"d": 2}]}',
            "[]",
            '[1, "two", null, [3]]',
            None,
            '{"a": "x\\"y\\u00e9\\n", "b": {"c": [true, false]}}',
            '{"a": 1.50, "b": {"c": 1e3}}',
            '{"a": null, "a": 2, "b": {"x": 1}, "b": {"c": 5}}',
            '{"a": 1} trailing',
            "{'a': 'single', 'b': {'c': 'it'}}",
            '{"a": 1',
            "",
            "  ",
            "null",
            "12",
            '"text"',
            '{"a": [1, 2,]}',
            '{"a": NaN, "b": 1}',
            '{"a": 12345678901234567890123, "b": {"c": -0.0}}',
            '{"a": [1.0, 2e-7, 123456789012.5], "b": {"c": [[1], [2, 3]]}}',
            '{"a": "tab\there", "b": []}',
            '{"a b": 1, "a.b": 2, "": 3, "é": "日本"}',
            '{"a": {"b": {"c": 1}}, "b": {"c": {}}}',
            '[{"a": 1}, {"a": [2]}, {"b": 3}]',
            '{"a": [[1, 2], [3]], "b": "[1]"}',
            "abc",
            '{"A": 1, "a": true, "b": {"c": "/"}}',
            '{"a":1,"b":"x","c":[1,2],"d":2.5}',
        ],
    ),
    "url": (
        pa.string(),
        [
            "http://user:pw@spark.apache.org:80/path/to%20x?query=1&b=2#frag",
            "https://example.com",
            None,
            "ftp://example.com/?a=&b",
            "mailto:x@example.com",
            "",
            "no url",
            "http://example.com/a b",
            "/relative/path?query=x%3Dy",
            "http://[::1]:8080/index.html?query=a+b",
            "HTTP://EXAMPLE.com?Query=2&query=3",
        ],
    ),
    "arr": (pa.list_(pa.field("element", pa.int32())), [[], [1], [1, 2, 3], None, [None, 5], [3, 1, 2, 2]]),
    "st": (
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        [{"x": 1, "y": "a"}, {"x": None, "y": ""}, None, {"x": -5, "y": None}],
    ),
    "m": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], [], None, [("b", 2), ("a", None)]]),
}

ROWS = 47
"""A prime number, so that columns of different lengths meet in many combinations."""


def awkward_table() -> pa.Table:
    """Make the table; each column repeats its values until the table is full."""
    arrays = {}
    for name, (kind, values) in _COLUMNS.items():
        repeated = [values[row % len(values)] for row in range(ROWS)]
        if pa.types.is_decimal(kind):
            repeated = [None if value is None else Decimal(value) for value in repeated]
        arrays[name] = pa.array(repeated, type=kind)
    return pa.table(arrays)

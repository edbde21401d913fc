"""Lines of files: read together they give what each gives alone, whatever stands around them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.connectors.registry import SOURCES
from rejoinder.formats.lines import Lines
from rejoinder.ir.catalog import Source

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
SHARED = ["\n", "\n", "\r\n", "\r", " ", "1", ",", '"', "x", "é"]
PARTS = {
    "csv": [*SHARED, '""', "1,x\n", '2,"y"\n', '3,"a,b"\n'],
    "json": [*SHARED, '{"a":1}', '{"b":"é"}', "{}", "null", "[1]", "{", "}", '{"a":', '{"more":', '{"more":{"a":1}}'],
}


def read(format_: str, text: str, chunk_lines: int = 1000) -> tuple[list[dict[str, Any]], list[tuple[int, str]]]:
    """The rows of a text, and the lines that are rejected."""
    source = Source("s", "stream", SCHEMA, (), None, None, None, format_, {"malformed": "divert"}, {})
    read = SOURCES[format_].reader
    assert read is not None
    tables = list(read(pa.BufferReader(text.encode()), "p", source, chunk_lines))
    rejected = [row for usable, table in tables if not usable for row in table.to_pylist()]
    rows = [row for usable, table in tables if usable for row in table.to_pylist()]
    return rows, [(row["line"], row["text"]) for row in rejected]


@pytest.mark.parametrize("format_", PARTS)
@given(data=st.data())
def test_lines_are_read_together_as_alone(format_: str, data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(PARTS[format_]), max_size=14)))
    alone = [(number, *read(format_, line)) for number, line in enumerate(re.split("\r\n|\n|\r", text), start=1)]
    rows = [row for _, found, _ in alone for row in found]
    rejected = [(number, line) for number, _, odd in alone for _, line in odd]
    assert read(format_, text, data.draw(st.sampled_from([1, 2, 1000]))) == (rows, rejected)


@pytest.mark.parametrize(
    ("text", "quote", "starts", "numbers"),
    [
        ("", "", [0], []),
        ("a", "", [0, 1], [1]),
        ("a\n\nb\r\nc\rd", "", [0, 2, 3, 6, 8, 9], [1, 2, 3, 4, 5]),
        ("\r\n\r", "", [0, 2, 3], [1, 2]),
        ('a"\n\n"b\nc', '"', [0, 7, 8], [1, 4]),
        ('a\n"b\nc', '"', [0, 2, 6], [1, 2]),
    ],
    ids=repr,
)
def test_where_lines_begin(text: str, quote: str, starts: list[int], numbers: list[int]) -> None:
    lines = Lines.of(pa.py_buffer(text.encode()), quote)
    assert (lines.starts.tolist(), lines.numbers.tolist()) == (starts, numbers)
    parts = [bytes(lines.part(at, at + 1)).decode() for at in range(len(lines))]
    assert parts == [text[first:last] for first, last in pairwise(starts)]

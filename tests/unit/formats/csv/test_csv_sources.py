"""CSV files as a source: quotes, records over several lines, headers, malformed lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.errors import MalformedInput, SchemaChanged
from tests.unit.formats.input_folder import Folder


@pytest.mark.parametrize("line", ["3,3,3", "three,3", "3,9999999999", '3,"3', "3"])
def test_a_malformed_csv_line(tmp_path: Path, line: str) -> None:
    folder = Folder(tmp_path, "csv")
    path = folder.put(f"5,5\n\n{line}\n6,6\n")
    folder.refuses(MalformedInput, f"line 3 of `{path}` of `s` is malformed", "malformed 'divert'")


@pytest.mark.parametrize("text", ["", "\n\r\n", "id,n\n", "id,n"])
def test_a_csv_file_without_records(tmp_path: Path, text: str) -> None:
    folder = Folder(tmp_path, "csv", header=str("id" in text).lower())
    folder.put(text)
    assert folder.rows() == []


@pytest.mark.parametrize(
    ("text", "rows", "odd"),
    [
        ('1,"x\n2,"z,y"\n', [(2, "z,y")], [1]),
        ('1,"x\n2,y\nq,z\n', [(2, "y")], [1, 3]),
        ('1,x\n2,"y', [(1, "x")], [2]),
        ('1,"x\n2,"y\n3,z', [(3, "z")], [1, 2]),
        ('1,x\n"2",', [(1, "x"), (2, None)], []),
        ('1,5" wide\n2,"a ""b"""\n3,""\n4,\n', [(1, '5" wide'), (2, 'a "b"'), (3, ""), (4, None)], []),
    ],
)
def test_quotes_of_csv_are_closed_on_their_line(
    tmp_path: Path, text: str, rows: list[tuple[int, str]], odd: list[int]
) -> None:
    folder = Folder(tmp_path, "csv", "id BIGINT, n STRING", malformed="divert")
    folder.put(text)
    assert [tuple(row.values()) for row in folder.rows()] == rows
    rejected = folder.driver.table("s.rejected")
    assert [row["line"] for row in rejected] == odd
    assert {row["reason"] for row in rejected if '"' in row["text"]} <= {"a quote is not closed on its line"}


def test_csv_without_quotes(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "csv", "id BIGINT, n STRING", quote="", sep="\t")
    folder.put('1\t"x\n2\t"y"\n')
    assert [tuple(row.values()) for row in folder.rows()] == [(1, '"x'), (2, '"y"')]


def test_csv_records_over_several_lines(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "csv", "id BIGINT, n STRING", malformed="divert", multiLine="true")
    folder.put('1,"a\r\n\nb"\nx,"c\n"\n\n2,"d ""\n"\ny,z')
    assert [tuple(row.values()) for row in folder.rows()] == [(1, "a\r\n\nb"), (2, 'd "\n')]
    assert [(row["line"], row["text"]) for row in folder.driver.table("s.rejected")] == [(4, 'x,"c\n"'), (9, "y,z")]


@pytest.mark.parametrize(
    ("columns", "line"),
    [("d INT, id BIGINT, n INT", "2,1,7"), ("id BIGINT, d INT, n INT", "1,2,7"), ("id BIGINT, n INT", "1,7,2")],
)
def test_the_diff_of_csv_stands_where_it_is_declared_or_last(tmp_path: Path, columns: str, line: str) -> None:
    folder = Folder(tmp_path, "csv", columns, diff="d")
    folder.put(f"{line}\n")
    assert folder.rows() == [{"id": 1, "n": 7}] * 2
    folder.driver.restart()
    folder.put(f"{line}\n", "2")
    assert len(folder.rows()) == 4


def test_a_csv_header_compares_without_case(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "csv", "id STRING, n INT", header="true")
    folder.put("\nmore,N,ID\nx,1,007\n")
    assert folder.rows() == [{"id": "007", "n": 1}]


def test_a_csv_header_without_a_declared_column(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "csv", header="true")
    folder.put("id,m\n1,1\n")
    folder.refuses(SchemaChanged, "column `n` of `s` is missing", "columns found: id, m")


def test_a_csv_header_with_a_column_twice(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "csv", header="true")
    folder.put("id,n,ID\n1,1,2\n")
    folder.refuses(SchemaChanged, "column `id` of `s` appears twice", "columns found: id, n, id")


def test_a_csv_header_that_is_no_text(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "csv", header="true")
    folder.put(b"id,\xff\n1,1\n")
    folder.refuses(MalformedInput, "the header of", "1.csv")

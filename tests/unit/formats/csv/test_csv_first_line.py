"""CSV files whose header or separator is not the declared one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.errors import MalformedInput, SchemaChanged
from rejoinder.testing import Driver

SECRET = "4711"


def driver(tmp_path: Path, text: str, columns: str = "id INT, name STRING, n INT", **options: str) -> Driver:
    """A flow over one CSV file."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text(text)
    listed = "".join(f", {name} '{value}'" for name, value in options.items())
    made = Driver()
    made.sql(f"CREATE STREAM s ({columns}) USING csv OPTIONS (path '{tmp_path}/in'{listed})")
    made.sql("CREATE VIEW v AS SELECT * FROM s")
    return made


def refused(made: Driver) -> MalformedInput:
    with pytest.raises(MalformedInput) as raised:
        made.step()
    error = raised.value
    assert SECRET not in f"{error.fact} {error.detail} {error.hint}"
    return error


@pytest.mark.parametrize(
    "header", ["id,name,n", "ID,Name,N", '"id","name","n"', "id, name, n", "\n\nid,name,n", "key,name,n"]
)
def test_a_header_that_is_not_declared(tmp_path: Path, header: str) -> None:
    error = refused(driver(tmp_path, f"{header}\n{SECRET},a,2\n"))
    column = "name" if "key" in header else "id"
    assert "1.csv` of `s` looks like a header: it names column `" + column in error.fact
    assert error.hint == "set OPTIONS (header 'true'), or header 'false' if it is a row"


def test_a_header_over_text_columns_is_not_taken_for_a_row(tmp_path: Path) -> None:
    text, columns = f"id,name\n{SECRET},a\n", "id STRING, name STRING"
    assert "looks like a header" in refused(driver(tmp_path, text, columns)).fact


def test_header_false_is_believed(tmp_path: Path) -> None:
    made = driver(tmp_path, "id,name\n1,a\n", "id STRING, name STRING", header="false")
    made.step()
    assert len(made.table("v")) == 2


def test_one_text_column_is_not_reported(tmp_path: Path) -> None:
    made = driver(tmp_path, "word\nother\n", "word STRING")
    made.step()
    assert len(made.table("v")) == 2


def test_a_declared_header_that_is_a_row(tmp_path: Path) -> None:
    error = refused(driver(tmp_path, f"{SECRET},a,2\n2,b,3\n", header="true"))
    assert "1.csv` of `s` is not a header: column `id` is not in it" in error.fact
    assert error.hint is not None and "remove header 'true'" in error.hint


@pytest.mark.parametrize(("separator", "shown"), [(";", "';'"), ("\t", "'\\t'"), ("|", "'|'")])
@pytest.mark.parametrize("is_header", [True, False])
def test_another_separator(tmp_path: Path, separator: str, shown: str, is_header: bool) -> None:
    row = separator.join([SECRET, "a", "2"])
    text = f"{separator.join(['id', 'name', 'n'])}\n{row}\n" if is_header else f"{row}\n"
    error = refused(driver(tmp_path, text, header=str(is_header).lower()))
    assert error.fact.startswith("only one column was found in the first line of")
    assert "`s` has 3: column `id`, …" in error.fact
    assert error.hint == f"set OPTIONS (sep {shown})"


def test_a_comma_where_another_separator_is_declared(tmp_path: Path) -> None:
    assert refused(driver(tmp_path, f"{SECRET},a,2\n", sep=";")).hint == "set OPTIONS (sep ',')"


def test_a_bad_line_further_down_is_that_line(tmp_path: Path) -> None:
    error = refused(driver(tmp_path, "1,a,2\nx,a,2\n"))
    assert error.fact.startswith("line 2 of")


def test_a_header_with_a_column_missing_names_it(tmp_path: Path) -> None:
    made = driver(tmp_path, "id,name\n1,a\n", header="true")
    with pytest.raises(SchemaChanged, match="column `n` of `s` is missing"):
        made.step()


def test_where_bad_lines_are_diverted_so_is_the_header(tmp_path: Path) -> None:
    made = driver(tmp_path, "id,name,n\n1,a,2\n", malformed="divert")
    made.step()
    assert made.table("v") == [{"id": 1, "name": "a", "n": 2}]

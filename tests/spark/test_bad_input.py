"""Bad input: an error with fact, detail, hint; the last committed epoch stays readable, a corrected flow goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rejoinder as rj
from rejoinder.errors import (
    EvaluationError,
    InvalidSql,
    MalformedInput,
    MissingInput,
    MissingRow,
    NullKey,
    RejoinderError,
    SchemaChanged,
    SeveralRows,
)
from tests.spark.conftest import OpenFlow
from tests.spark.files import write_rows
from tests.spark.rows import bag, view, wait_until

GOOD = [{"id": 1, "n": 10}, {"id": 2, "n": 20}]


class Source:
    """A source on a folder, a view on it, and one good epoch."""

    def __init__(self, open_flow: OpenFlow, folder: Path, what: str, format_: str, **options: str) -> None:
        self.open_flow, self.folder, self.format = open_flow, folder, format_
        self.flow = open_flow()
        folder.mkdir()
        given = ", ".join(f"{key} '{value}'" for key, value in {"path": str(folder), **options}.items())
        self.flow.sql(f"CREATE {what} USING {format_} OPTIONS ({given})")

    def view(self, query: str, good: list[dict[str, Any]] | None = None) -> None:
        self.flow.sql(f"CREATE VIEW v AS {query}")
        write_rows(self.folder / f"0.{self.format}", GOOD if good is None else good)
        self.flow.run()
        assert view(self.flow, "v").total() == 2

    @contextmanager
    def fails(self, kind: type[RejoinderError], fact: str, *, key: str = "", restart: bool = False) -> Iterator[None]:
        """Run the flow, which fails; correct it in the block; then it goes on, here or in a new driver."""
        epoch, rows = self.flow.epoch, view(self.flow, "v")
        with pytest.raises(kind) as raised:
            self.flow.run()
        error = raised.value
        assert fact in error.fact and error.detail and error.hint
        assert not key or error.values == key
        assert error.__cause__ is None, "no stack of Spark's behind it"
        assert self.flow.epoch == epoch and view(self.flow, "v") == rows
        if restart:
            assert bag(self.flow.table("v")) == rows
            self.flow = self.open_flow()
        yield
        self.flow.run()
        assert self.flow.epoch == epoch + 1


@pytest.fixture
def stream(open_flow: OpenFlow, tmp_path: Path) -> Source:
    """A stream of Parquet files with one good epoch."""
    source = Source(open_flow, tmp_path / "in", "STREAM s (id BIGINT, n INT)", "parquet")
    source.view("SELECT id, n FROM s")
    return source


def test_missing_path(stream: Source) -> None:
    stream.folder.rename(stream.folder.with_name("moved"))
    with pytest.raises(MissingInput, match=r"path `.*in` of `s` does not exist[\s\S]*Hint: create the folder"):
        stream.flow.run()
    assert view(stream.flow, "v").total() == 2
    stream.folder.with_name("moved").rename(stream.folder)
    write_rows(stream.folder / "1.parquet", GOOD)
    stream.flow.run()
    assert view(stream.flow, "v").total() == 4


def test_a_file_that_is_no_parquet(stream: Source) -> None:
    bad = stream.folder / "1.parquet"
    bad.write_text("this is not Parquet, though it is called so")
    with stream.fails(MalformedInput, "1.parquet` of `s` cannot be read as Parquet", restart=True):
        write_rows(bad, GOOD)
    assert view(stream.flow, "v").total() == 4


def test_a_missing_column(stream: Source) -> None:
    bad = stream.folder / "1.parquet"
    write_rows(bad, [{"id": 3, "m": 30}])
    with stream.fails(SchemaChanged, "column `n` of `s` is missing"):
        bad.unlink()
        write_rows(stream.folder / "2.parquet", GOOD)
    assert view(stream.flow, "v").total() == 4


def test_a_column_of_another_type(stream: Source) -> None:
    bad = stream.folder / "1.parquet"
    write_rows(bad, pa.table({"id": [3], "n": ["30"]}))
    with stream.fails(SchemaChanged, "column `n` of `s` does not fit its declared type"):
        write_rows(bad, GOOD)
    assert view(stream.flow, "v").total() == 4


def test_a_malformed_json_line(open_flow: OpenFlow, tmp_path: Path) -> None:
    source = Source(open_flow, tmp_path / "in", "STREAM s (id BIGINT, n INT)", "json")
    source.view("SELECT id, n FROM s")
    bad = source.folder / "1.json"
    bad.write_text('{"id": 5}\n\n{"id": 3, "n": \n{"id": 6}\n')
    with source.fails(MalformedInput, f"line 3 of `file:{bad}` of `s` is malformed", restart=True):
        write_rows(bad, GOOD)


@pytest.mark.parametrize(
    ("format_", "good", "bad"),
    [
        ("json", '{"id": 3}\n{"id": 4}\n', ['{"id": 3, "n": ', '{"id": "three"}']),
        ("csv", "3,3\n4,4\n", ["1,2,3", "x,1"]),
    ],
)
def test_malformed_lines_are_diverted(
    open_flow: OpenFlow, tmp_path: Path, format_: str, good: str, bad: list[str]
) -> None:
    source = Source(open_flow, tmp_path / "in", "STREAM s (id BIGINT, n INT)", format_, malformed="divert")
    source.view("SELECT id, n FROM s")
    flow = source.flow
    assert flow.table("s.rejected").collect() == []
    for number in (1, 2):
        (source.folder / f"{number}.{format_}").write_text(good + "\n".join(bad) + "\n")
        flow.run()
    assert view(flow, "v").total() == 6
    rejected = flow.table("s.rejected").collect()
    expected = [(f"{number}.{format_}", 3 + at, text) for number in (1, 2) for at, text in enumerate(bad)]
    assert sorted((Path(row.file).name, row.line, row.text) for row in rejected) == sorted(expected)
    assert all(row.reason for row in rejected)
    assert bag(open_flow(parallelism=1).table("s.rejected")) == bag(rejected)


def test_a_null_primary_key(open_flow: OpenFlow, tmp_path: Path) -> None:
    source = Source(open_flow, tmp_path / "in", "TABLE s (id BIGINT, n INT, PRIMARY KEY (id))", "parquet")
    source.view("SELECT id, n FROM s")
    bad = source.folder / "1.parquet"
    write_rows(bad, [{"id": 3, "n": 1}, {"id": None, "n": 7}])
    with source.fails(NullKey, "NULL in the primary key of `s`"):
        write_rows(bad, [{"id": 3, "n": 1}])
    assert view(source.flow, "v") == bag([(1, 10), (2, 20), (3, 1)])


def test_the_delete_of_a_row_that_is_not_there(open_flow: OpenFlow, tmp_path: Path) -> None:
    source = Source(open_flow, tmp_path / "in", "CHANGELOG s (id BIGINT, n INT, d INT)", "parquet", diff="d")
    source.view("SELECT id, n FROM s", [{**row, "d": 1} for row in GOOD])
    write_rows(source.folder / "1.parquet", [{"id": 1, "n": 11, "d": -1}])
    with source.fails(MissingRow, "a deleted row does not exist in `s`"):
        write_rows(source.folder / "2.parquet", [{"id": 1, "n": 11, "d": 1}])
    assert view(source.flow, "v") == bag([(1, 10), (2, 20)])


def test_the_first_error_is_reported_and_not_what_follows_from_it(open_flow: OpenFlow, tmp_path: Path) -> None:
    """Without the inserts of a file that cannot be read, the deletes of another one have nothing to delete."""
    source = Source(open_flow, tmp_path / "in", "CHANGELOG s (id BIGINT, n INT, d INT)", "parquet", diff="d")
    source.view("SELECT DISTINCT x.id, y.n FROM s x JOIN s y ON x.n = y.n", [{**row, "d": 1} for row in GOOD])
    rows = [{"id": i, "n": i, "d": 1} for i in range(40)]
    (source.folder / "1.parquet").write_text("no Parquet")
    write_rows(source.folder / "2.parquet", [{**row, "d": -1} for row in rows])
    with source.fails(MalformedInput, "cannot be read as Parquet"):
        write_rows(source.folder / "1.parquet", rows)


def test_an_expression_that_fails(open_flow: OpenFlow, tmp_path: Path) -> None:
    source = Source(open_flow, tmp_path / "in", "STREAM s (id BIGINT, n INT)", "parquet")
    source.view("SELECT id + 9223372036854775805 AS x FROM s")
    bad = source.folder / "1.parquet"
    write_rows(bad, [{"id": 3, "n": 1}])
    with source.fails(EvaluationError, "`id + 9223372036854775805` failed on a row"):
        write_rows(bad, [{"id": 2, "n": 1}])


def test_a_scalar_subquery_with_two_rows(open_flow: OpenFlow, tmp_path: Path) -> None:
    source = Source(open_flow, tmp_path / "in", "CHANGELOG s (id BIGINT, n INT, d INT)", "parquet", diff="d")
    query = "SELECT id, (SELECT i.id FROM s AS i WHERE i.n = o.n + 10) AS next FROM s AS o"
    source.view(query, [{**row, "d": 1} for row in GOOD])
    bad = source.folder / "1.parquet"
    write_rows(bad, [{"id": 3, "n": 20, "d": 1}])
    with source.fails(SeveralRows, "a scalar subquery has more than one row", key="o.n = 10"):
        write_rows(bad, [{"id": 3, "n": 30, "d": 1}])
    assert view(source.flow, "v") == bag([(1, 2), (2, 3), (3, None)])


def test_a_row_that_is_gone_raises_nothing(open_flow: OpenFlow, tmp_path: Path) -> None:
    source = Source(open_flow, tmp_path / "in", "CHANGELOG s (id BIGINT, n INT, d INT)", "parquet", diff="d")
    source.view(
        "SELECT x.id, 100 DIV y.id AS q FROM s x JOIN s y ON x.n = y.n AND 7 DIV y.id >= 0 WHERE x.id > 0",
        [{**row, "d": 1} for row in GOOD],
    )
    write_rows(source.folder / "1.parquet", [{"id": 0, "n": 30, "d": 1}])  # meets nobody yet
    source.flow.run()
    write_rows(source.folder / "2.parquet", [{"id": 0, "n": 30, "d": -1}, {"id": 5, "n": 30, "d": 1}])
    source.flow.run()
    assert view(source.flow, "v").total() == 3
    bad = source.folder / "3.parquet"
    write_rows(bad, [{"id": 0, "n": 30, "d": 1}])
    with source.fails(EvaluationError, "`100 DIV y.id` failed on a row"):
        write_rows(bad, [{"id": 4, "n": 30, "d": 1}])


def test_a_running_flow_says_what_stopped_it(stream: Source) -> None:
    flow = stream.flow
    flow.start()
    (stream.folder / "1.parquet").write_text("no Parquet")
    wait_until(lambda: not flow.is_running)
    with pytest.raises(MalformedInput):
        flow.wait(1)
    with pytest.raises(MalformedInput):
        flow.stop()
    flow.stop()
    write_rows(stream.folder / "1.parquet", GOOD)
    flow.start()
    wait_until(lambda: view(flow, "v").total() == 4)
    flow.stop()


@pytest.mark.parametrize("name", ["../escape", "a/b", "a'b", 'a"b', "..", "a\nb"])
def test_names_that_could_lead_elsewhere(flow: rj.Flow, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    for statement in (f"CREATE STREAM `{name}` (id BIGINT)", f"CREATE VIEW `{name}` AS SELECT 1 AS one"):
        with pytest.raises(InvalidSql) as raised:
            flow.sql(statement)
        assert raised.value.hint
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["two words", "größe", "select", "%41;--"])
def test_names_that_are_odd_and_work(flow: rj.Flow, name: str) -> None:
    flow.sql(f"CREATE CHANGELOG `{name}` (`{name}` BIGINT)")
    flow.sql(f"CREATE VIEW `v of {name}` AS SELECT `{name}` FROM `{name}`")
    flow.insert(name, [{name: 1}])
    flow.run()
    assert bag(flow.table(f"v of {name}")) == bag([(1,)])
    assert flow.table(f"v of {name}").columns == [name]


def test_a_name_that_belongs_to_the_rejected_relation(flow: rj.Flow) -> None:
    with pytest.raises(InvalidSql):
        flow.sql("CREATE STREAM `s.rejected` (id BIGINT)")

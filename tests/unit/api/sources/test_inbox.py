"""Rows that are handed to a flow: what no epoch could take is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from rejoinder.api.sources.inbox import Inbox, checked_rows
from rejoinder.cli.commands.open_state import open_state
from rejoinder.cli.main import app
from rejoinder.connectors.files.reading import read_file
from rejoinder.engine import publisher
from rejoinder.errors import Corrupt, InputError, StorageFailed
from rejoinder.ir.catalog import Source

SOURCE = Source("s", "stream", pa.schema([("k", pa.int64())]))


@pytest.mark.parametrize("rows", [{"k": 1}, [1, 2], [{"k": 1}, None]])
def test_rows_are_a_list_of_dicts(rows: Any) -> None:
    with pytest.raises(InputError) as raised:
        checked_rows(SOURCE, rows)
    assert raised.value.fact == "rows for `s` are a list of dicts or an Arrow table"
    assert raised.value.detail and raised.value.hint


def test_columns_that_are_not_there_are_refused() -> None:
    for row in ({"kk": 1}, {1: 1}):
        with pytest.raises(InputError, match="has no column"):
            checked_rows(SOURCE, [row])


def test_damaged_rows_are_named(tmp_path: Path) -> None:
    """Any bit, in the body too, where Arrow itself notices nothing."""
    source = Source("s", "stream", pa.schema([("k", pa.int64())]), format="memory")
    inbox = Inbox(str(tmp_path), lambda _: "a1")
    inbox.add(source, [{"k": 1}, {"k": 2}], 1)
    (path,) = Path(inbox.folder("s")).glob("*.arrow")
    data = path.read_bytes()
    assert [table.column("k").to_pylist() for _, table in read_file(str(path), source, 10)] == [[1, 2]]
    body = data.index((1).to_bytes(8, "little") + (2).to_bytes(8, "little"))
    for position in (body + 1, 3, len(data) - 3, *range(9, len(data), 61)):
        path.write_bytes(bytes([*data[:position], data[position] ^ 1, *data[position + 1 :]]))
        with pytest.raises(Corrupt, match=r"inserted into `s` are damaged[\s\S]*Hint: restore"):
            list(read_file(str(path), source, 10))
    for short in (b"", data[:20], data[:-1]):
        path.write_bytes(short)
        with pytest.raises(Corrupt, match="inserted into `s` are damaged"):
            list(read_file(str(path), source, 10))


STREAM = "CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t"


@pytest.mark.parametrize(
    "text",
    [
        f"DROP STREAM t CASCADE; {STREAM}",
        "DROP VIEW v; DROP STREAM t; CREATE TABLE t (a BIGINT PRIMARY KEY)",
        "CREATE STREAM t (a BIGINT, b BIGINT)",
    ],
)
def test_rows_that_wait_are_not_those_of_a_later_source(tmp_path: Path, text: str) -> None:
    """Whoever defines it: the command line knows nothing of the inbox."""
    place = str(tmp_path / "state")
    sql(place, STREAM)
    waiting(place).add(source_of(place), [{"a": 1}], 1)
    assert rows_in(place) == 1
    sql(place, "CREATE VIEW w AS SELECT a + 1 AS b FROM t; DROP VIEW w; CREATE OR REPLACE VIEW v AS SELECT a, 1 FROM t")
    assert rows_in(place) == 1, "the source is the same"
    sql(place, text)
    assert rows_in(place) == 0
    waiting(place).add(source_of(place), [{"a": 2}], 1)
    assert rows_in(place) == 1


def test_rows_wait_on_if_a_definition_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "state")
    sql(place, STREAM)
    waiting(place).add(source_of(place), [{"a": 1}], 1)

    def refuse(*_: object) -> None:
        raise StorageFailed("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(publisher, "commit", refuse)
        assert sql(place, f"DROP STREAM t CASCADE; {STREAM}", exit_code=1)
    assert rows_in(place) == 1


def test_every_source_in_memory_has_an_inbox(tmp_path: Path) -> None:
    """Also if no view reads it, or none does any more."""
    place = str(tmp_path / "state")
    sql(place, "CREATE STREAM t (a BIGINT)")
    waiting(place).add(source_of(place), [{"a": 1}], 1)
    sql(place, "CREATE VIEW v AS SELECT a FROM t")
    sql(place, "DROP VIEW v")
    assert rows_in(place) == 1


def sql(place: str, text: str, *, exit_code: int = 0) -> str:
    done = CliRunner().invoke(app, ["sql", place, text])
    assert done.exit_code == exit_code, done.output
    return done.output


def waiting(place: str) -> Inbox:
    engine = open_state(place)
    return Inbox(place, lambda source: engine.version.attached[source])


def source_of(place: str) -> Source:
    source = open_state(place).version.catalog.get("t")
    assert isinstance(source, Source)
    return source


def rows_in(place: str) -> int:
    return len([*Path(waiting(place).folder("t")).glob("*.arrow")])

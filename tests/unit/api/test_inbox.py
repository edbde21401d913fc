"""Rows that are handed to a flow: what no epoch could take is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.api.inbox import Inbox, checked_rows
from rejoinder.errors import Corrupt, InputError
from rejoinder.operators.formats import read_file
from rejoinder.plan.catalog import Source

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
    inbox = Inbox(str(tmp_path))
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

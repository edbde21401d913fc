"""Rows that are handed to a flow: what no epoch could take is refused at once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rejoinder.api.inbox import checked_rows
from rejoinder.errors import InputError
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

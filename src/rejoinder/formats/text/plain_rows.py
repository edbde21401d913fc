"""Rows as dicts of plain values, and the order in which they are shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from rejoinder.formats.text.row_text import plain, table_text

Row = dict[str, Any]


class Rows(list[Row]):
    """Rows of a rendering, a list of dicts; as text, an aligned table."""

    def __init__(self, rows: Iterable[Row], columns: Sequence[str]) -> None:
        super().__init__(rows)
        self.columns = list(columns)

    def __str__(self) -> str:
        return table_text(self, self.columns)


def plain_rows(table: pa.Table, *, is_ordered: bool = False) -> Rows:
    """Return rows as dicts of plain values. Times are local times of the zone that their type names, without it.

    Unless `is_ordered`, the rows are sorted by their values.
    """
    rows: list[Row] = [{name: plain(value) for name, value in row.items()} for row in python_rows(table)]
    return Rows(rows if is_ordered else sorted(rows, key=sort_key), table.column_names)


def python_rows(table: pa.Table) -> list[Row]:
    """Return rows as dicts. Maps are dicts too, or pairs if a key is repeated or not hashable in Python."""
    try:
        return list(table.to_pylist(maps_as_pydicts="strict"))
    except (KeyError, TypeError):
        return list(table.to_pylist())


def sort_key(row: Row) -> list[tuple[int, str, Any]]:
    """Return the sort key of a row: by values, NULL first and NaN last. Rows that are equal in SQL have equal keys."""
    return [_value_key(value) for value in row.values()]


def _value_key(value: Any) -> tuple[int, str, Any]:
    if value is None:
        return 0, "", 0
    if isinstance(value, float) and math.isnan(value):
        return 2, "", 0
    if isinstance(value, bool | int | float):
        return 1, "", value + 0  # -0.0 equals 0.0
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        return 1, type(value).__name__, str([(name, _value_key(item)) for name, item in inner])
    return 1, type(value).__name__, str(value)

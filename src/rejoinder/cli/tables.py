"""Rows as aligned tables: NULL shown as such, numbers to the right, nested values and windows in one readable line."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rejoinder.cli.screen import out

Row = Mapping[str, Any]
NULL = Text("NULL", style="dim italic")
OPEN_END = date(9999, 12, 31)
LONGEST_BYTES = 24
NARROWEST = 7


def show_rows(rows: Sequence[Row], columns: Sequence[str], *, styles: Sequence[str] | None = None) -> None:
    """Print rows as a table; one below the other, name by name, where a terminal is too narrow for the columns."""
    if out.is_terminal and len(columns) * NARROWEST > out.width:
        _show_records(rows, columns)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        is_number = any(_is_number(row[name]) for row in rows)
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for at, row in enumerate(rows):
        table.add_row(*[cell(row[name]) for name in columns], style=styles[at] if styles else None)
    show_table(table)


def show_table(table: Table) -> None:
    """Print a table: folded to the width of a terminal, in its full width elsewhere."""
    if out.is_terminal:
        out.print(table, soft_wrap=False)
        return
    wide = Console(width=1_000_000, file=io.StringIO())
    with wide.capture() as captured:
        wide.print(table)
    for line in captured.get().splitlines():
        out.file.write(line.rstrip() + "\n")


def _show_records(rows: Sequence[Row], columns: Sequence[str]) -> None:
    width = max(len(name) for name in columns)
    for number, row in enumerate(rows, 1):
        out.print(Text(f"── {number} ──", style="dim"))
        for name in columns:
            out.print(Text.assemble((name.ljust(width), "bold"), "  ", cell(row[name])))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _trimmed(moment: str) -> str:
    return moment.rstrip("0") if "." in moment and "+" not in moment else moment


def cell(value: Any) -> Text:
    """A value as it is shown in a table."""
    return NULL if value is None else Text(text(value))


def text(value: Any) -> str:
    """A value on one line.

    >>> text({"start": datetime(2026, 1, 1, 10), "end": datetime(9999, 12, 31)})
    '[2026-01-01 10:00:00, inf)'
    >>> text([1, None, {"a": True}]), text(b"ab")
    ('[1, NULL, {a: true}]', '0x6162')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case bytes():
            more = "…" if len(value) > LONGEST_BYTES else ""
            return f"0x{value[:LONGEST_BYTES].hex()}{more}"
        case datetime():
            return "inf" if value.date() == OPEN_END else _trimmed(value.isoformat(sep=" "))
        case {"start": start, "end": end, **rest} if not rest and isinstance(start, date):
            return f"[{text(start)}, {text(end)})"
        case dict():
            return "{" + ", ".join(f"{name}: {text(inner)}" for name, inner in value.items()) + "}"
        case list() if value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):  # Arrow's maps
            return "{" + ", ".join(f"{text(key)}: {text(inner)}" for key, inner in value) + "}"
        case list():
            return "[" + ", ".join(map(text, value)) + "]"
        case _:
            return str(value).replace("\n", "⏎")

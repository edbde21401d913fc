"""Rows as aligned tables: NULL shown as such, numbers to the right, nested values and windows in one readable line."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rejoinder.cli.screen import out
from rejoinder.engine.neutral_text import neutral
from rejoinder.engine.texts import is_number, text

Row = Mapping[str, Any]
NULL = Text("NULL", style="dim italic")
NARROWEST = 7


def show_rows(rows: Sequence[Row], columns: Sequence[str], *, styles: Sequence[str] | None = None) -> None:
    """Print rows as a table; one below the other, name by name, where a terminal is too narrow for the columns."""
    if out.is_terminal and len(columns) * NARROWEST > out.width:
        _show_records(rows, columns)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        to_the_right = any(is_number(row[name]) for row in rows)
        table.add_column(Text(neutral(name)), justify="right" if to_the_right else "left", overflow="fold")
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
            out.print(Text.assemble((neutral(name).ljust(width), "bold"), "  ", cell(row[name])))


def cell(value: Any) -> Text:
    """A value as it is shown in a table."""
    return NULL if value is None else Text(text(value))

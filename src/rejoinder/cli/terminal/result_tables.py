"""Rows as aligned tables: NULL shown as such, numbers to the right, nested values and windows in one readable line."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rejoinder.cli.terminal.expanded_rows import show_expanded
from rejoinder.cli.terminal.screen import out
from rejoinder.formats.text.neutral_text import neutral
from rejoinder.formats.text.row_text import is_number, text

Row = Mapping[str, Any]
NULL = Text("NULL", style="dim italic")
GAP = 3  # columns of a terminal between two columns of a table
UNLIMITED = 1_000_000


def show_rows(
    rows: Sequence[Row],
    columns: Sequence[str],
    *,
    styles: Sequence[str] | None = None,
    expanded: bool | None = None,
) -> None:
    """Print rows as a table, or as records if `expanded`. None means records if the table is too wide.

    With `expanded` False, a table that is too wide for the terminal is folded.
    """
    shown = [{name: cell(row[name]) for name in columns} for row in rows]
    if expanded or (expanded is None and out.is_terminal and _width(shown, columns) > out.width):
        show_expanded(shown, {name: neutral(name) for name in columns}, styles)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        to_the_right = any(is_number(row[name]) for row in rows)
        table.add_column(Text(neutral(name)), justify="right" if to_the_right else "left", overflow="fold")
    for number, row in enumerate(shown):
        table.add_row(*row.values(), style=styles[number] if styles else None)
    show_table(table)


def show_table(table: Table) -> None:
    """Print a table: folded to the width of a terminal, at full width elsewhere."""
    if out.is_terminal:
        out.print(table, soft_wrap=False)
        return
    wide = Console(width=UNLIMITED, file=io.StringIO())
    with wide.capture() as captured:
        wide.print(table)
    for line in captured.get().splitlines():
        out.file.write(line.rstrip() + "\n")


def _width(rows: Sequence[Mapping[str, Text]], columns: Sequence[str]) -> int:
    """Return the width of an unfolded table in terminal columns."""
    widths = [max([cell_len(neutral(name)), *(row[name].cell_len for row in rows)]) for name in columns]
    return sum(widths) + GAP * (len(columns) - 1)


def cell(value: Any) -> Text:
    """Format a value for a table. Bytes are cut only on a terminal."""
    if isinstance(value, bytes) and not out.is_terminal:
        return Text(f"0x{value.hex()}")
    return NULL if value is None else Text(text(value))

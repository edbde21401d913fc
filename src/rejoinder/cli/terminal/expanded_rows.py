"""Expanded rows: one record per row, as with `\\x` in psql, for tables that are wider than the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from rejoinder.cli.terminal.screen import note, out

ELLIPSIS = "…"
SPACE = "  "
_SHORTEST = 8


def cut(value: str, width: int) -> str:
    """Cut a value to at most `width` columns of a terminal.

    >>> cut("twelve chars", 12), cut("twelve chars", 7)
    ('twelve chars', 'twelve…')
    """
    return value if cell_len(value) <= width else set_cell_size(value, width - 1) + ELLIPSIS


def show_expanded(
    rows: Sequence[Mapping[str, Text]], columns: Mapping[str, str], styles: Sequence[str] | None = None
) -> None:
    """Print records. `columns` maps each column to its label. Long values are cut only on a terminal."""
    if not columns:
        return
    longest = max(cell_len(shown) for shown in columns.values())
    room = max(_SHORTEST, out.width - longest - len(SPACE)) if out.is_terminal else None
    is_cut = False
    for number, row in enumerate(rows):
        rule = f"── {number + 1} "
        out.print(Text(rule + "─" * max(2, min(longest + 12, 40) - len(rule)), style="dim"))
        for name, shown in columns.items():
            value = row[name]
            if room is not None and cell_len(value.plain) > room:
                value, is_cut = Text(cut(value.plain, room), style=value.style), True
            padding = " " * (longest - cell_len(shown))
            line = Text.assemble((shown, "bold"), padding, SPACE, value, style=styles[number] if styles else "")
            line.rstrip()
            out.print(line)
    if is_cut:
        note("long values are cut: --format json or a pipe shows them whole")


def toggled(expanded: bool | None, word: str) -> bool | None:
    """Return the setting after `\\x`, `\\x on`, `\\x off` or `\\x auto`; None is auto. Raises `ValueError`.

    >>> toggled(None, ""), toggled(True, ""), toggled(True, "auto")
    (True, False, None)
    """
    settings: dict[str, Any] = {"": not expanded, "on": True, "off": False, "auto": None}
    if word not in settings:
        raise ValueError(word)
    result: bool | None = settings[word]
    return result

"""Test data as text: tables with a header, and `__time__` and `__diff__` columns for changes.

>>> from_table('''
...   id | item | __time__ | __diff__
...   1  | tea  | 0        | 1
...   1  | tea  | 2        | -1
... ''')[1]
Change(row={'id': 1, 'item': 'tea'}, time=2, diff=-1)
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from rejoinder.errors import InputError


@dataclass(frozen=True)
class Change:
    """A row that is inserted at a time, or deleted if `diff` is negative."""

    row: dict[str, Any]
    time: int = 0
    diff: int = 1


def from_table(text: str) -> list[Change]:
    """Parse a text table into changes, ordered by time. Raises `InputError`.

    Cells are NULL, numbers, booleans, quoted or bare text, ISO dates and times.
    """
    lines = [line.strip() for line in text.strip().splitlines()]
    lines = [line for line in lines if line and not _is_rule(line)]
    if not lines:
        return []
    if lines[0].startswith("|"):
        lines = [line.removeprefix("|").removesuffix("|") for line in lines]
    names = [cell.strip() for cell in lines[0].split("|")]
    changes = []
    for line in lines[1:]:
        cells = [parse_cell(cell.strip()) for cell in line.split("|")]
        if len(cells) != len(names):
            raise InputError(
                f"a line has {len(cells)} cells instead of {len(names)}",
                detail=line,
                hint=f"columns: {', '.join(names)}",
            )
        row = dict(zip(names, cells, strict=True))
        time, diff = row.pop("__time__", 0), row.pop("__diff__", 1)
        for name, value in (("__time__", time), ("__diff__", diff)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise InputError(f"`{name}` of a line is {value!r}", detail=line, hint="give a whole number")
        changes.append(Change(row, time, diff))
    return sorted(changes, key=lambda change: change.time)


def _is_rule(line: str) -> bool:
    """Return whether a line is a rule. A line of empty cells is a row of NULLs."""
    return "-" in line and set(line) <= set("-+| ")


def parse_cell(text: str) -> Any:
    """Return the value of a cell."""
    if text in ("", "NULL", "null", "None"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = ()
    if not isinstance(value, tuple):  # a tuple is text with commas
        return value
    for parse in (date.fromisoformat, datetime.fromisoformat):
        try:
            return parse(text)
        except ValueError:
            continue
    return text

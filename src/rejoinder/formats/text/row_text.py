"""Rows as text: values on one line, windows as `[start, end)`, aligned tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from rejoinder.formats.text.neutral_text import neutral

Row = Mapping[str, Any]
OPEN_END = date(9999, 12, 31)
LONGEST_BYTES = 24
UNITS = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


def plain(value: Any) -> Any:
    """A value without time zones; a time is the local time of its zone."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dict):
        return {plain(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def text(value: Any) -> str:
    """Format a value on one line.

    >>> text({"start": datetime(2026, 1, 1, 10), "end": datetime(9999, 12, 31)})
    '[2026-01-01 10:00, inf)'
    >>> text({"start": datetime(2026, 1, 1, 12), "end": datetime(2026, 1, 1, 12, 5)})
    '[2026-01-01 12:00, 12:05)'
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
        case {"start": datetime() as start, "end": datetime() as end, **rest} if not rest:
            return _window(start, end)
        case {"start": int() as first, "end": int() as end, **rest} if not rest:
            return f"[{first}, {end})"
        case dict():
            return "{" + ", ".join(f"{text(name)}: {text(inner)}" for name, inner in value.items()) + "}"
        case list() if value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):  # Arrow's maps
            return "{" + ", ".join(f"{text(key)}: {text(inner)}" for key, inner in value) + "}"
        case list():
            return "[" + ", ".join(map(text, value)) + "]"
        case _:
            return neutral(str(value))


def length_text(microseconds: int) -> str:
    """Format a length of time in the largest unit that gives a whole number.

    >>> length_text(90_000_000), length_text(3_600_000_000), length_text(0)
    ('90 seconds', '1 hour', '0 seconds')
    """
    fitting = [(unit, size) for unit, size in UNITS if microseconds % size == 0 and microseconds >= size]
    unit, size = fitting[0] if fitting else ("second", 1_000_000)
    number = microseconds // size
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _window(start: datetime, end: datetime) -> str:
    """Format a window: the date once, and seconds only if an end has some."""
    ends = [moment for moment in (start, end) if moment.date() != OPEN_END]
    precision = "minutes" if all(not moment.second and not moment.microsecond for moment in ends) else "auto"
    shown = [_trimmed(moment.isoformat(sep=" ", timespec=precision)) for moment in ends]
    if len(shown) == 2 and start.date() == end.date():
        shown[1] = shown[1].split(" ", 1)[1]
    return f"[{shown[0] if ends and ends[0] is start else 'inf'}, {shown[-1] if ends and ends[-1] is end else 'inf'})"


def _trimmed(moment: str) -> str:
    return moment.rstrip("0") if "." in moment and "+" not in moment else moment


def is_number(value: Any) -> bool:
    """Return whether a value is a number, which is aligned to the right."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def table_text(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Format rows as an aligned table without borders, numbers to the right.

    >>> print(table_text([{"id": 7, "name": "Ada"}, {"id": 12, "name": None}], ["id", "name"]))
    id  name
    ──  ────
     7  Ada
    12  NULL
    """
    cells = [[text(row[name]) for name in columns] for row in rows]
    widths = [max([len(name), *(len(line[number]) for line in cells)]) for number, name in enumerate(columns)]
    right = [any(is_number(row[name]) for row in rows) for name in columns]
    columns = [neutral(name) for name in columns]
    lines = [columns, ["─" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )

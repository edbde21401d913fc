"""Show errors in a text of statements with their line, and a caret below the word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from rejoinder.cli.terminal.screen import err
from rejoinder.errors import PlanningError
from rejoinder.sql.parse.error_positions import Place, Span, place_of

_BEFORE, _AFTER = 60, 40


@dataclass
class Placed:
    """The last error with a known place: the error, the name of its text, and the place."""

    error: PlanningError | None = None
    label: str = ""
    place: Place | None = None


_last = Placed()


@contextmanager
def placed(text: str, label: str, span: Span | None = None) -> Iterator[None]:
    """Record where in `text` an error of the body is. `label` names the text, for example a file."""
    try:
        yield
    except PlanningError as error:
        if _last.error is not error:
            _last.error, _last.label, _last.place = error, label, place_of(text, error, span)
        raise


def show_place(error: BaseException) -> bool:
    """Print the place of an error. Returns False if it is not known."""
    place = _last.place if _last.error is error else None
    if place is None:
        return False
    label = f"{_last.label}:" if _last.label else "line "
    err.print(Text(f"  {label}{place.line}:{place.column}", style="cyan"))
    line, start = place.text.replace("\t", " "), place.column - 1
    first, last = max(0, start - _BEFORE), min(len(line), start + max(1, place.length) + _AFTER)
    number = f"  {place.line} │ "
    before = ("…" if first else "") + line[first:start]
    err.print(Text(number + before + line[start:last] + ("…" if last < len(line) else "")))
    if place.length:
        margin = " " * (cell_len(number) - 2) + "│ "
        caret = "^" * max(1, cell_len(line[start : start + place.length]))
        err.print(Text.assemble(margin, " " * cell_len(before), (caret, "bold red")))
    return True

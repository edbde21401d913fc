"""Output of the command line: results to standard output; progress, notes and errors to standard error."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from rejoinder.errors import RejoinderError
from rejoinder.formats.text.neutral_text import neutral_lines

DEBUG = "--debug"


class SafeConsole(Console):
    """A console that shows control characters in names and values instead of sending them to the terminal."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts and tables. The caller must neutralise the cells of tables."""
        for item in objects:
            if isinstance(item, Text):
                item.plain = neutral_lines(item.plain)
        super().print(*objects, **options)


out = SafeConsole(highlight=False, soft_wrap=True)
# Use one console if both are the same terminal: then output is printed above a live line instead of through it.
_is_shared = sys.stdout.isatty() and sys.stderr.isatty()
err = out if _is_shared else SafeConsole(highlight=False, soft_wrap=True, stderr=True)


_values = {"shown": False}


def show_row_values(is_wanted: bool) -> None:
    """Let errors show values of rows, or not."""
    _values["shown"] = is_wanted


def show_error(error: RejoinderError, show_place: Callable[[RejoinderError], bool] = lambda error: False) -> None:
    """Print fact, place, detail, values and hint; no traceback."""
    err.print(
        Text.assemble(("error: ", "bold red"), (error.fact, "bold"), (f"  [{error.code}]", "dim")),
        soft_wrap=not err.is_terminal,
    )
    is_placed = show_place(error)
    detail = None if is_placed and re.match(r"line \d+", error.detail or "") else error.detail
    error.shows_values = error.shows_values or _values["shown"]
    for label, text in (("Detail", detail), ("Values", error.shown_values), ("Hint", error.hint)):
        if text:
            err.print(
                Text.assemble((f"{label}: ", "green" if label == "Hint" else "yellow"), text),
                soft_wrap=not err.is_terminal,
            )


def unexpected(error: Exception) -> RejoinderError:
    """Convert an unexpected error to one of ours."""
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return RejoinderError(
        f"unexpected {type(error).__name__}",
        values=first[:500] or None,
        hint=f"{DEBUG} shows where it happened; please report it with that text",
    )


def refused(error: OSError) -> RejoinderError:
    """Convert an error of the operating system outside of a state, such as output to a full disk."""
    target = f"`{error.filename}`" if error.filename else "standard output"
    return RejoinderError(
        f"cannot write or read {target}: {error.strerror or type(error).__name__}",
        hint="check the free space and the permissions",
    )


def note(text: str) -> None:
    """Print a note to standard error."""
    err.print(Text(text, style="dim"))


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show an activity on a terminal; print nothing elsewhere."""
    if not err.is_terminal:
        yield
        return
    with err.status(text):
        yield


def count(number: int, noun: str) -> str:
    """Format a number with its noun.

    >>> count(1, "row"), count(12345, "row")
    ('1 row', '12,345 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Format a span of time.

    >>> duration(0.25), duration(12.5), duration(150), duration(9000)
    ('0.25 s', '12.5 s', '2 m 30 s', '2 h 30 m')
    """
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < 172_800:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
    return f"{whole // 86_400} days"


def show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning as a note, without its place in the code. Skip warnings for programmers."""
    if not issubclass(category, DeprecationWarning | PendingDeprecationWarning | ResourceWarning):
        note(f"warning: {message}")


def drop_output() -> None:
    """Discard further output to a closed pipe: Python would report an error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

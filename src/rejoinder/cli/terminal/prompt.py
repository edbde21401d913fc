"""The prompt: reads statements up to the semicolon, with history if readline is available."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rejoinder.cli.terminal.screen import err, note
from rejoinder.host.private_files import FILE_MODE, replace_file
from rejoinder.secret_options import redacted_text
from rejoinder.sql.statements.query_text import is_complete

HISTORY = Path.home() / ".rejoinder_history"
HISTORY_LINES = 1_000
HELP = """\
Statements end with a semicolon and may take several lines:
  SELECT * FROM view;   SELECT STREAM * FROM view;   SELECT TVR * FROM view;
  SHOW VIEWS;   SHOW SOURCES;   SHOW SINKS;   SHOW WATERMARKS;   SHOW ARRANGEMENTS;
  EXPLAIN view;   CREATE …;   DROP …;
\\d lists sources and views, \\x switches the expanded form (\\x auto: for tables that are too wide), \\q quits,
Ctrl-C drops the current input."""


def statements() -> Iterator[str]:
    """Yield complete inputs until `\\q` or the end of input; backslash words other than `\\?` are passed on."""
    with _history():
        lines: list[str] = []
        while True:
            try:
                line = input("rejoinder> " if not lines else "       ...> ")
            except KeyboardInterrupt:
                err.print()
                lines = []
                continue
            except EOFError:
                err.print()
                return
            word = line.strip()
            if word == "\\q" or (not lines and word in ("quit", "exit", "quit;", "exit;")):
                return
            if not lines and word in ("\\?", "\\h", "help", "help;"):
                note(HELP)
                continue
            if not lines and (not word or word.startswith("\\")):
                if word:
                    yield word
                continue
            lines.append(line)
            if is_complete("\n".join(lines)):
                yield "\n".join(lines)
                lines = []


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Load and save the history. Without readline, or with a read-only home, there is none."""
    try:
        import readline
    except ImportError:
        yield
        return
    with contextlib.suppress(OSError):
        readline.read_history_file(HISTORY)
    try:
        yield
    finally:
        count = readline.get_current_history_length()
        typed = [readline.get_history_item(number) for number in range(max(1, count - HISTORY_LINES + 1), count + 1)]
        with contextlib.suppress(OSError):
            write_history(HISTORY, typed)


def write_history(path: Path, lines: Iterable[str | None]) -> None:
    """Write lines to a file that only its owner can read, with secrets hidden. Raises `OSError` if it is a link."""
    text = redacted_text("\n".join(line for line in lines if line))  # a secret may be on the line after its name
    with replace_file(path) as file:
        os.fchmod(file.fileno(), FILE_MODE)
        file.write(f"{text}\n".encode())

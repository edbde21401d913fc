"""Output to terminals and pipes without UTF-8: symbols become plain ones, other characters escapes."""

from __future__ import annotations

import codecs
import sys

ERRORS = "rejoinder-plain"
_PLAIN = {"─": "-", "│": "|", "…": "...", "−": "-", "→": "->", "×": "x", "‘": "'", "’": "'", "⠋": "*"}


def plain(failure: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that an encoding lacks: lines and arrows by plain symbols, others by JSON escapes.

    >>> plain(UnicodeEncodeError("ascii", "─ é", 0, 1, ""))[0], plain(UnicodeEncodeError("ascii", "─ é", 2, 3, ""))[0]
    ('-', '\\\\u00e9')
    """
    if not isinstance(failure, UnicodeEncodeError):
        raise failure
    letters = failure.object[failure.start : failure.end]
    return "".join(_PLAIN.get(letter) or _escaped(letter) for letter in letters), failure.end


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


codecs.register_error(ERRORS, plain)


def adapt_output() -> None:
    """Make standard output and standard error accept every text, whatever their encoding."""
    for stream in (sys.stdout, sys.stderr):
        encoding = str(getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
        if not encoding.startswith("utf") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ERRORS)


def as_typed(text: str) -> str:
    """Decode a text of the command line as UTF-8, if Python has read it with another encoding.

    >>> as_typed("gr" + b"\\xc3\\xb6".decode("ascii", "surrogateescape") + "ße")
    'größe'
    """
    if not any(0xDC80 <= ord(letter) <= 0xDCFF for letter in text):
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

"""Turn sqlglot's syntax errors into `InvalidSql`, with the place and a suggestion for a mistyped keyword."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from sqlglot.errors import SqlglotError

from rejoinder.errors import InvalidSql
from rejoinder.secret_options import redacted_text, shown_context

_KEYWORDS = (
    *("SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "BETWEEN", "INTERVAL"),
    *("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "SEMI", "ANTI", "USING", "EMIT"),
)
_ALIKE = 0.75
_LAST_TWO = re.compile(r"(?P<before>\S*)\s+(?P<word>[A-Za-z_]+)\s*$")
_BEFORE_A_NAME = ("FROM", "JOIN", "AS", "")
_CLOSED = re.compile(r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""", re.DOTALL)
_OPENING = re.compile(r"""['"`]|/\*""")


def unreadable(failure: SqlglotError, text: str) -> InvalidSql:
    """Convert an error of sqlglot."""
    errors = getattr(failure, "errors", None)
    if errors:
        first = errors[0]
        around = first["start_context"][-40:], first["highlight"], first["end_context"][:40]
        place = f"line {first['line']}, column {first['col']}: {shown_context(text, *around)}"
        return InvalidSql(_plain_fact(str(first["description"]), first), detail=place, hint=_hint(first))
    opened = unclosed(text)
    if opened is None:
        what = "the text cannot be read as SQL"
    else:
        what = "a comment is not closed" if text.startswith("/*", opened[0]) else "a quote is not closed"
    return InvalidSql(
        what,
        detail=redacted_text(text).strip()[:80],
        hint="close it; a quote within a text is written twice, as in 'it''s'",
    )


def unclosed(text: str) -> tuple[int, int] | None:
    """Return start and end of the quote or comment sign that is never closed.

    >>> unclosed("SELECT 'a', 'b")
    (12, 13)
    """
    rest = _CLOSED.sub(lambda closed: " " * len(closed[0]), text)
    opening = _OPENING.search(rest)
    return None if opening is None else opening.span()


def mistyped_keyword(word: str) -> str | None:
    """Return the keyword that a word resembles; None if it is a keyword or resembles none.

    >>> mistyped_keyword("FORM"), mistyped_keyword("jion"), mistyped_keyword("from"), mistyped_keyword("city")
    ('FROM', 'JOIN', None, None)
    """
    if word.upper() in _KEYWORDS:
        return None
    return next(iter(difflib.get_close_matches(word.upper(), _KEYWORDS, 1, _ALIKE)), None)


def _hint(first: Mapping[str, Any]) -> str:
    """Suggest a keyword for the marked word or the word before it, unless that is a name after FROM."""
    before = _LAST_TWO.search(first["start_context"])
    words = [first["highlight"]]
    if before is not None and before["before"].upper() not in _BEFORE_A_NAME and not before["before"].endswith(","):
        words.append(before["word"])
    for word in words:
        keyword = mistyped_keyword(word)
        if keyword is not None:
            return f"did you mean `{keyword}` instead of `{word}`?"
    return "check the text around the marked word"


def _plain_fact(description: str, first: Mapping[str, Any]) -> str:
    """Return sqlglot's description without the names of its classes."""
    if "<class" in description:
        return f"something is missing at `{first['highlight']}`"
    if description.startswith("Invalid expression"):
        return f"unexpected `{first['highlight']}`"
    wanted, _, got = description.partition(" but got <Token")
    missing = re.fullmatch(r"Expecting (\S+)", wanted.rstrip("."))
    if missing is not None and not got:
        return f"expected `{missing[1]}` and found `{first['highlight']}`"
    if not got:
        return description.lower().rstrip(".")
    text = re.search(r"text: (.*?), line: ", got)
    found = "SENTINEL" if text is None else text.group(1)
    return f"{wanted.lower()} {'at the end' if found == 'SENTINEL' else f'and found `{found}`'}"

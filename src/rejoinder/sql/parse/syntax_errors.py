"""Text that is not SQL, as an error of ours: what was found where, and the keyword that a mistyped word stands for."""

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
    """What sqlglot says about a text, as an error of ours."""
    found = getattr(failure, "errors", None)
    if found:
        first = found[0]
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
    """Start and end of the quote or comment sign that is never closed.

    >>> unclosed("SELECT 'a', 'b")
    (12, 13)
    """
    rest = _CLOSED.sub(lambda found: " " * len(found[0]), text)
    found = _OPENING.search(rest)
    return None if found is None else found.span()


def mistyped_keyword(word: str) -> str | None:
    """The keyword that a word looks like; None if it is one, or like none.

    >>> mistyped_keyword("FORM"), mistyped_keyword("jion"), mistyped_keyword("from"), mistyped_keyword("city")
    ('FROM', 'JOIN', None, None)
    """
    if word.upper() in _KEYWORDS:
        return None
    return next(iter(difflib.get_close_matches(word.upper(), _KEYWORDS, 1, _ALIKE)), None)


def _hint(first: Mapping[str, Any]) -> str:
    """The marked word or the one before it may be a mistyped keyword; a name behind FROM is not."""
    before = _LAST_TWO.search(first["start_context"])
    words = [first["highlight"]]
    if before is not None and before["before"].upper() not in _BEFORE_A_NAME and not before["before"].endswith(","):
        words.append(before["word"])
    for word in words:
        keyword = mistyped_keyword(word)
        if keyword is not None:
            return f"did you mean `{keyword}` instead of `{word}`?"
    return "look at the text around the marked word"


def _plain_fact(description: str, first: Mapping[str, Any]) -> str:
    """What sqlglot says, without the names of its classes."""
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

"""How long and how deep a statement may be: looked at before it is parsed, in one pass that stops at the first excess.

Parsers recurse, so a text of nothing but parentheses could end a process. What is within the limits is read on a
stack that is large enough for it (`host.deep_stack`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rejoinder.host.caps import Caps, cap_reached, caps
from rejoinder.host.deep_stack import on_deep_stack

T = TypeVar("T")

# Texts and comments are passed over; what opens, closes, or makes an expression one level deeper is counted.
_TOKENS = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"
    r"|(?P<open>[(\[]|\bCASE\b)|(?P<close>[)\]]|\bEND\b)|(?P<operator>\|\||[-+*/%~!]|\b(?:NOT|DIV)\b)"
    r"|(?P<relation>\b(?:SELECT|JOIN)\b)|(?P<list>\b(?:AND|OR|WHEN|THEN|ELSE|FROM|WHERE|UNION|ON)\b|[,;<>=])",
    re.IGNORECASE | re.DOTALL,
)


def check_text(text: str) -> int:
    """How deep a text is, at most: CTEs, parts of a UNION and joins may all be within each other.

    Raises `LimitReached`, before anything is parsed.

    >>> check_text("SELECT (a + b) * 2"), check_text("SELECT 'x(((', 1")
    (4, 2)
    """
    limits = caps()
    if len(text) > limits.max_sql_length:
        raise cap_reached("the SQL is too long", "max_sql_length", f"{len(text):,} characters")
    deepest, relations, counts = 1, 0, [0]
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "open":
            counts.append(0)
            if len(counts) > limits.max_sql_depth + 1:
                raise cap_reached("the SQL is nested too deeply", "max_sql_depth", _place(token, text))
        elif kind == "close" and len(counts) > 1:
            counts.pop()
        elif kind == "operator":
            counts[-1] += 1
            if counts[-1] > limits.max_sql_operators:
                place = _place(token, text)
                raise cap_reached("an expression has too many operators in a row", "max_sql_operators", place)
        elif kind in ("list", "relation"):
            counts[-1] = 0
            relations += kind == "relation"
        deepest = max(deepest, len(counts) + counts[-1])
    return deepest + relations


SHALLOW = 40
_depths: dict[tuple[str, Caps], int] = {}


def with_stack(texts: Iterable[str], function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that recurses over texts, on a large stack if they are deep. Raises `LimitReached`.

    Texts may be queries of views that read each other, so what counts is how deep they are together.
    """
    if sum(map(_depth_of, texts)) > SHALLOW:
        return on_deep_stack(function, *arguments)
    return function(*arguments)


def _depth_of(text: str) -> int:
    """What `check_text` says, remembered: a plan looks at the texts of all views."""
    known = _depths.get((text, caps()))
    if known is None:
        if len(_depths) > 1000:
            _depths.clear()
        known = _depths[text, caps()] = check_text(text)
    return known


def _place(token: re.Match[str], text: str) -> str:
    return f"line {text.count(chr(10), 0, token.start()) + 1}"

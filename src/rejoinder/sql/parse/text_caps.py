"""Caps on the length and depth of a statement, checked in one pass before it is parsed.

Parsers recurse, so a text of nested parentheses could overflow the stack and end the process. A text within the caps is
parsed on a stack that is large enough for it (`host.deep_stack`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rejoinder.host.caps import Caps, cap_reached, caps
from rejoinder.host.deep_stack import on_deep_stack

T = TypeVar("T")

# Strings and comments are skipped. Brackets, and operators that deepen an expression, are counted.
_TOKENS = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"
    r"|(?P<open>[(\[]|\bCASE\b)|(?P<close>[)\]]|\bEND\b)|(?P<operator>\|\||[-+*/%~!]|\b(?:NOT|DIV)\b)"
    r"|(?P<relation>\b(?:SELECT|JOIN)\b)|(?P<list>\b(?:AND|OR|WHEN|THEN|ELSE|FROM|WHERE|UNION|ON)\b|[,;<>=])",
    re.IGNORECASE | re.DOTALL,
)


def check_text(text: str) -> int:
    """Return an upper bound of the depth of a text; each CTE, side of a UNION and join counts as one level.

    Raises `LimitReached`.

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

    The texts may be queries of views that read each other, so their depths are added up.
    """
    if sum(map(_depth_of, texts)) > SHALLOW:
        return on_deep_stack(function, *arguments)
    return function(*arguments)


def _depth_of(text: str) -> int:
    """Return the cached result of `check_text`: every plan checks the texts of all views."""
    depth = _depths.get((text, caps()))
    if depth is None:
        if len(_depths) > 1000:
            _depths.clear()
        depth = _depths[text, caps()] = check_text(text)
    return depth


def _place(token: re.Match[str], text: str) -> str:
    return f"line {text.count(chr(10), 0, token.start()) + 1}"

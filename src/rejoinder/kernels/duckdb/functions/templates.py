"""Templates: DuckDB text with places for arguments.

A place is `{0}`, `{1}`, … for an argument, `{!message}` where the row fails, or `{!=text}` where a text is the message.
(A repetition in a regular expression must not look like a place: `{2,2}`, not `{2}`.) An argument that is
named more than once is evaluated once (`render`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_words import once

Rendering = str | Callable[[Call], str]
"""The template of a function, or what makes it from a call: its options, and the types of arguments and result."""


def failing(message: str) -> str:
    """The place where the row fails."""
    return f"{{!{message}}}"


def bound(text: str) -> tuple[str, Callable[[str], str]]:
    """Name a part of a template that is used often. Returns the name, and the function that binds it in a body."""
    name = f"once_{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
    return name, lambda body: once(name, text, body)


def listed(function: str) -> Callable[[Call], str]:
    """The rendering of a function that passes all arguments on."""
    return lambda call: f"{function}({places(len(call.parts))})"


def places(count: int, first: int = 0, separator: str = ", ") -> str:
    """Places for so many arguments.

    >>> places(2), places(3, first=1)
    ('{0}, {1}', '{1}, {2}, {3}')
    """
    return separator.join(f"{{{place}}}" for place in range(first, first + count))

"""The page of the documentation that lists every function, generated from the registry.

python -m rejoinder.sql.functions.function_list > docs/functions.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rejoinder.sql.functions.aggregates import AGGREGATES, AggregateFunction
from rejoinder.sql.functions.function_registry import FAMILIES
from rejoinder.sql.functions.scalar_function import ScalarFunction

_HEAD = """# Functions

Functions and operators of SQL, under the names that Spark gives them. Values, types, NULL and errors are Spark's
(ANSI mode, time zone UTC). Every example is TRUE. A function that is not in this list is refused when the view is
created, with a hint.

This page is generated: `python -m rejoinder.sql.functions.function_list > docs/functions.md`.
"""
_AGGREGATES = """
## Aggregates

The examples are over three rows, with `x` = 1, 2 and NULL. Every aggregate takes `FILTER (WHERE condition)`.
"""


def markdown() -> str:
    """Return the page."""
    tables = (f"\n## {family}\n{_table(functions)}" for family, functions in FAMILIES.items())
    return f"{_HEAD}{''.join(tables)}{_AGGREGATES}{_table(AGGREGATES)}"


def _table(functions: Sequence[ScalarFunction | AggregateFunction]) -> str:
    lines = ["", "| function | result | example |", "|---|---|---|"]
    for function in sorted(functions, key=lambda function: function.name.lower()):
        aliases = "".join(f"<br>{_code(alias.partition('(')[0])}" for alias in function.aliases)
        example = _code(function.example) if function.example else ""
        lines.append(f"| {_code(function.signature)}{aliases} | {function.doc} | {example} |")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(markdown())

"""The page of the documentation that lists every function, generated from the registry, and the score.

python -m rejoinder.sql.functions.function_list > docs/functions.md
python -m rejoinder.sql.functions.function_list --score
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rejoinder.sql.functions.aggregates.aggregate_function import AggregateFunction
from rejoinder.sql.functions.aggregates.aggregate_registry import AGGREGATES
from rejoinder.sql.functions.function_registry import FAMILIES, SIGNATURES
from rejoinder.sql.functions.refused_functions import REASONS, REFUSED, SPELLED, SPELLINGS
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.functions.spark_names import SPARK_NAMES

_HEAD = """# Functions

Functions and operators of SQL, under the names that Spark gives them. Values, types, NULL and errors are Spark's
(ANSI mode; the session zone is the zone of the flow). Every example is TRUE. A function that is not in this list is
refused when the view is created, with a hint. A column without AS has the name that Spark generates, such as
`round(x, 0)` for `ROUND(x)`; the few whose name is not certain are refused, and need AS. *Outside DuckDB* marks a
function that Arrow and NumPy evaluate.

This page is generated: `python -m rejoinder.sql.functions.function_list > docs/functions.md`.
"""
_AGGREGATES = """
## Aggregates

The examples are over three rows, with `x` = 1, 2 and NULL. Every aggregate takes `FILTER (WHERE condition)`.
"""
_SPELLINGS = """
## Other names of `pyspark.sql.functions`

| name | in SQL |
|---|---|
"""
_REFUSED = """
## Not supported

| names | reason | instead |
|---|---|---|
"""


def markdown() -> str:
    """Return the page."""
    tables = (f"\n## {family}\n{_table(functions)}" for family, functions in FAMILIES.items())
    spelled = "".join(f"| {_codes(spelling.names)} | {spelling.how} |\n" for spelling in SPELLINGS)
    refused = "".join(f"| {_codes(entry.names)} | {entry.reason} | {entry.instead} |\n" for entry in REFUSED)
    missing = f"\nNot supported yet: {_codes(sorted(score()['missing']))}.\n"
    lists = f"{''.join(tables)}{_AGGREGATES}{_table(AGGREGATES)}"
    return f"{_HEAD}{lists}{_SPELLINGS}{spelled}{_REFUSED}{refused}{missing}"


def score() -> dict[str, set[str]]:
    """The names of `pyspark.sql.functions` by status: supported, refused for a reason, or missing."""
    supported = {name for name in SPARK_NAMES if name in SIGNATURES or name in SPELLED}
    refused = {name for name in SPARK_NAMES - supported if name in REASONS}
    return {"supported": supported, "refused": refused, "missing": set(SPARK_NAMES - supported - refused)}


def score_text() -> str:
    """The score as lines of text: a line for each name, then the totals."""
    statuses = score()
    lines = [f"{name:36} {status}" for status, names in statuses.items() for name in sorted(names)]
    totals = ", ".join(f"{len(names)} {status}" for status, names in statuses.items())
    return "\n".join([*sorted(lines), f"{len(SPARK_NAMES)} names: {totals}", ""])


def _table(functions: Sequence[ScalarFunction | AggregateFunction]) -> str:
    lines = ["", "| function | result | example |", "|---|---|---|"]
    for function in sorted(functions, key=lambda function: function.name.lower()):
        aliases = "".join(f"<br>{_code(alias.partition('(')[0])}" for alias in function.aliases)
        example = _code(function.example) if function.example else ""
        is_outside = isinstance(function, ScalarFunction) and function.outside_duckdb
        doc = f"{function.doc} *Outside DuckDB.*" if is_outside else function.doc
        lines.append(f"| {_code(function.signature)}{aliases} | {doc} | {example} |")
    return "\n".join(lines) + "\n"


def _codes(names: Sequence[str]) -> str:
    return ", ".join(map(_code, names))


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(score_text() if "--score" in sys.argv else markdown())

"""Expressions written as DuckDB text, by formats and connectors, and by users of `rejoinder.core`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.nodes import Call, Column
from rejoinder.ir.expressions.scalar_operation import ScalarOperation
from rejoinder.kernels.duckdb.functions.function_templates import DUCKDB_TEXT

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")*)\"")


def text_expression(
    sql: str, kind: pa.DataType, columns: Sequence[str], text: str = "", *, can_fail: bool = False
) -> Expression:
    """Make an expression from DuckDB text. The text quotes the names of all `columns` that it reads.

    >>> text_expression('"a" + 1', pa.int64(), ["a"]).columns
    ('a',)
    """

    def place(token: re.Match[str]) -> str:
        name = None if token[1] is None else token[1].replace('""', '"')
        return f"{{{columns.index(name)}}}" if name in columns else token[0]

    template = _QUOTED.sub(place, sql)
    operation = ScalarOperation(DUCKDB_TEXT, (f"({template})",), evaluation="all", can_fail=can_fail)
    # DuckDB takes the types of the columns from the table
    return Expression(Call(operation, [Column(name, pa.null()) for name in columns], kind), text or sql)

"""The row that WHY NOT asks for: `column = value` conditions as a table of one row."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.engine.queries.subscription import condition_on
from rejoinder.errors import Unsupported
from rejoinder.formats.text.plain_rows import python_rows
from rejoinder.formats.text.row_text import plain, text
from rejoinder.ir.catalog import View
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.nodes import Call, Cast, Column, Node
from rejoinder.ir.expressions.operators import NULL_SAFE
from rejoinder.kernels.duckdb.evaluate import project

_ONE_ROW = pa.table({"unit": pa.array([0], pa.int8())})


def expected_row(view: View, where: str, time_zone: str) -> pa.Table:
    """Return the columns that a condition fixes, with their values. Raises a `PlanningError`.

    The condition consists of `column = value` and `column <=> value`, combined with AND.
    """
    values: dict[str, pa.Array] = {}
    for conjunct in condition_on(view, where, time_zone).conjuncts:
        pair = _equality(conjunct.node)
        if pair is None:
            raise Unsupported(
                "WHY NOT needs the values of the expected row",
                detail=f"`{conjunct.text or where}` does not compare a column with a value",
                hint="write column = value, combined with AND",
            )
        name, value = pair
        kind = view.schema.field(name).type
        constant = project(_ONE_ROW, [("value", Expression(value))]).column("value")
        values[name] = constant.cast(kind)
    return pa.table(values)


def row_text(row: pa.Table, rename: bool = True) -> str:
    """Return the first row of a table as text: `id = 3, name = Ada`.

    >>> row_text(pa.table({"0.id": [3], "0.name": ["Ada"]}))
    'id = 3, name = Ada'
    """
    (values,) = python_rows(row.slice(0, 1))
    return ", ".join(f"{column_name(i) if rename else i} = {text(plain(value))}" for i, value in values.items())


def column_name(identifier: str) -> str:
    """Return the name of a column from its id in a logical tree.

    >>> column_name("1.0.id"), column_name("total")
    ('id', 'total')
    """
    number, dot, name = identifier.partition(".")
    return column_name(name) if dot and number.isdigit() else identifier


def _equality(node: Node) -> tuple[str, Node] | None:
    if not isinstance(node, Call) or node.operation.name not in ("=", NULL_SAFE):
        return None
    left, right = node.parts
    if left.columns == ():
        left, right = right, left
    while isinstance(left, Cast):
        left = left.parts[0]
    return (left.name, right) if isinstance(left, Column) and right.columns == () else None

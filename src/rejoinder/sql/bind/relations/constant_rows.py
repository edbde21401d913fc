"""Rows that a query writes itself: VALUES, and SELECT without FROM, over the relation of one row.

VALUES (1, 'a'), (2, 'b')

SELECT e.col1, e.col2 FROM (SELECT explode(array(<struct of 1, 'a'>, <struct of 2, 'b'>)) AS e)
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from rejoinder.errors import InvalidSql
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import UNIT, column_text
from rejoinder.ir.logical import Expand, Node, Query, Scan
from rejoinder.plan.blocks.accumulators import UNIT_SCHEMA
from rejoinder.sql.bind.relations.generators import field_at, list_of_rows
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types.terms import Term

NO_COLUMNS = Scope(())


def one_row(numbers: Iterator[int]) -> Node:
    """The relation of one row, which has no column that a query can name."""
    return Scan(UNIT, ((column_text(next(numbers), "c0"), "c0"),), UNIT_SCHEMA)


def bind_values(node: exp.Values, numbers: Iterator[int]) -> Query:
    """Bind VALUES; the columns are `col1`, `col2`, …. Raises `InvalidSql` or `TypeMismatch`."""
    rows = [list(row.expressions) if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    uneven = next((row for row in rows if len(row) != len(rows[0])), None)
    if uneven is not None:
        raise InvalidSql(
            f"VALUES has rows of {len(rows[0])} and of {len(uneven)} columns",
            detail=text_of(node),
            hint="write the same number of values in each row",
        )
    terms = [[Term(compile_expression(value, NO_COLUMNS).node) for value in row] for row in rows]
    elements = list_of_rows(terms, node, "col{}", first=1)
    root = one_row(numbers)
    element = column_text(next(numbers), "row")
    root = Expand(root, element, Expression(elements.list.node, f"row of {text_of(node)}"))
    kind = elements.list.type.value_type
    row = Term(nodes.Column(element, kind))
    fields = [field_at(row, at) for at in range(kind.num_fields)]
    return Query(root, tuple((name, Expression(f.node)) for name, f in zip(elements.names, fields, strict=True)))

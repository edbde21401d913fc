"""Column lists: `CREATE VIEW v (a, b) AS …`, `WITH t (a, b) AS (…)` and `(SELECT …) AS t (a, b)` name the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from rejoinder.errors import InvalidSql
from rejoinder.ir.logical import Query

_Node = TypeVar("_Node", bound=exp.Expr)


def with_item_names(node: _Node, names: Sequence[str]) -> _Node:
    """Give a name to each item of the first SELECT that has none, so that `SELECT n + 1` needs no AS.

    Before: `(a, b)` over `SELECT n + 1, id AS i`. After: `SELECT n + 1 AS a, id AS i`. Aliases stay, because GROUP BY
    and HAVING may use them; `with_column_names` renames their columns.
    """
    if not names:
        return node
    node = node.copy()
    first: exp.Expr = node
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if not isinstance(first, exp.Select) or len(first.expressions) != len(names):
        return node  # `with_column_names` reports the count
    if not any(item.is_star for item in first.expressions):
        items = [
            item if isinstance(item, exp.Alias) else exp.alias_(item, name, quoted=True)
            for item, name in zip(first.expressions, names, strict=True)
        ]
        first.set("expressions", items)
    return node


def with_column_names(query: Query, names: Sequence[str], relation: str) -> Query:
    """Rename the columns of a bound query. Raises `InvalidSql` if the number of names differs."""
    if not names:
        return query
    own = [name for name, _ in query.outputs]
    if len(own) != len(names):
        raise InvalidSql(
            f"`{relation}` lists {len(names)} column name{'s' * (len(names) > 1)}, and its query has {len(own)}",
            detail=f"listed: {', '.join(names)}; columns of the query: {', '.join(own)}",
            hint="list one name for each column of the query",
        )
    outputs = tuple((name, expression) for name, (_, expression) in zip(names, query.outputs, strict=True))
    windows = {name: query.windows[old] for name, old in zip(names, own, strict=True) if old in query.windows}
    return replace(query, outputs=outputs, windows=windows)

"""ORDER BY and LIMIT of a query inside a view: the first rows, by a window function.

    SELECT a FROM t ORDER BY b LIMIT 10 OFFSET 5
    SELECT a FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY b) > 5 AND ROW_NUMBER() OVER (ORDER BY b) <= 15

A relation has no order, so ORDER BY without LIMIT has no effect and is left out.
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from rejoinder.errors import InvalidSql
from rejoinder.sql.bind.query_parser import parse_query
from rejoinder.sql.bind.windows.window_frames import constant
from rejoinder.sql.bind.windows.window_syntax import has_windows
from rejoinder.sql.parse.clauses import text_of

_ROWS = "__rows"
LARGEST = 2**31 - 1
"""Of LIMIT and OFFSET, as in Spark."""


def has_limit(node: exp.Expr) -> bool:
    """Say whether a query has a LIMIT or an OFFSET."""
    return bool(node.args.get("limit") or node.args.get("offset"))


def without_order(node: exp.Query) -> exp.Query:
    """The query without an ORDER BY that has no effect."""
    if node.args.get("order") is None or has_limit(node):
        return node
    node = node.copy()
    node.set("order", None)
    return node


def ignored_order(text: str) -> str | None:
    """The ORDER BY at the end of a query that has no effect on the rows of a view; None if there is none."""
    if "order" not in text.lower():
        return None
    node = parse_query(text)
    order = node.args.get("order")
    return None if order is None or has_limit(node) else text_of(order).strip()


def with_limit(node: exp.Query) -> exp.Query:
    """A query with LIMIT as one with QUALIFY. Raises `InvalidSql` for a LIMIT that is not a number."""
    first, limit = row_count(node, "offset"), row_count(node, "limit")
    bare = node.copy()
    order = bare.args.get("order")
    for name in ("order", "limit", "offset", "with_"):
        bare.set(name, None)
    is_plain = isinstance(bare, exp.Select) and not bare.args.get("distinct") and not bare.args.get("qualify")
    if not is_plain or has_windows(cast(exp.Select, bare)):
        inner = bare.this if isinstance(bare, exp.Subquery) else bare
        rows = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(_ROWS)))
        bare = exp.Select(expressions=[exp.Star()], from_=exp.From(this=rows))
    keys: list[exp.Expr] = [exp.Ordered(this=exp.true(), nulls_first=True)]
    if order is not None:
        keys = [_meant(key, bare) for key in order.expressions]
    number = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=keys), over="OVER")
    conditions: list[exp.Expr] = []
    if first:
        conditions.append(exp.GT(this=number.copy(), expression=exp.Literal.number(first)))
    if limit is not None:
        conditions.append(exp.LTE(this=number, expression=exp.Literal.number((first or 0) + limit)))
    if conditions:
        bare.set("qualify", exp.Qualify(this=exp.and_(*conditions, copy=False)))
    return bare


def row_count(node: exp.Expr, clause: str) -> int | None:
    """The number of the clause `limit` or `offset`; None without one, and for LIMIT ALL. Raises `InvalidSql`."""
    part = node.args.get(clause)
    if part is None or (isinstance(part.expression, exp.Var) and part.expression.name.upper() == "ALL"):
        return None
    value = constant(part.expression) if part.expression is not None else None
    if clause == "limit" and isinstance(part.expression, exp.Var) and part.expression.name.upper() == "ALL":
        return None
    if not isinstance(value, int) or not 0 <= value <= LARGEST:
        raise InvalidSql(
            f"{clause.upper()} must be a constant whole number",
            detail=f"in `{text_of(part)}`",
            hint=f"as in {clause.upper()} 10; at most {LARGEST}",
        )
    return value


def _meant(key: exp.Expr, node: exp.Expr) -> exp.Expr:
    """A key of ORDER BY: a position or an alias of the SELECT list stands for what is there."""
    key = key.copy()
    inner = key.this if isinstance(key, exp.Ordered) else key
    found = None
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit():
        at = int(inner.this)
        if not 1 <= at <= len(node.expressions) or any(item.is_star for item in node.expressions):
            raise InvalidSql(
                f"ORDER BY {at}: there is no such column", detail=text_of(node), hint="name the column, or count from 1"
            )
        found = node.expressions[at - 1]
    elif isinstance(inner, exp.Column) and not inner.table:
        name = inner.name.lower()
        found = next((i for i in node.expressions if isinstance(i, exp.Alias) and i.alias.lower() == name), None)
    if found is not None:
        inner.replace(found.unalias().copy())
    return key

"""ORDER BY and LIMIT of a query inside a view: the first rows, by a window function.

    SELECT a FROM t ORDER BY b LIMIT 10 OFFSET 5
    SELECT a FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY b) > 5 AND ROW_NUMBER() OVER (ORDER BY b) <= 15

A relation has no order, so ORDER BY without LIMIT has no effect and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from sqlglot import exp

from rejoinder.errors import InvalidSql
from rejoinder.sql.bind.query_parser import parse_query
from rejoinder.sql.bind.relations.generators import called_generator
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.bind.windows.window_frames import constant
from rejoinder.sql.bind.windows.window_syntax import has_windows
from rejoinder.sql.parse.clauses import text_of

_ROWS = "__rows"
_POSITION = "position"
"""Marks a key of ORDER BY that counts the columns of a star, which are not known yet."""
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
    keys = [key.copy() for key in order.expressions] if order is not None else []
    is_plain = isinstance(bare, exp.Select) and not bare.args.get("distinct") and not bare.args.get("qualify")
    has_generators = any(called_generator(item) is not None for item in bare.expressions)
    if not is_plain or has_generators or has_windows(cast(exp.Select, bare)):
        bare = _around(bare.this if isinstance(bare, exp.Subquery) else bare, keys)
    keys = [_meant(key, bare) for key in keys] or [exp.Ordered(this=exp.true(), nulls_first=True)]
    number = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=keys), over="OVER")
    conditions: list[exp.Expr] = []
    if first:
        conditions.append(exp.GT(this=number.copy(), expression=exp.Literal.number(first)))
    if limit is not None:
        conditions.append(exp.LTE(this=number, expression=exp.Literal.number((first or 0) + limit)))
    if conditions:
        bare.set("qualify", exp.Qualify(this=exp.and_(*conditions, copy=False)))
    return bare


def _around(query: exp.Expr, keys: list[exp.Expr]) -> exp.Select:
    """A SELECT of all columns of a query. Keys that it does not select become columns of it, which are left out.

    SELECT a, rank() OVER (…) AS r FROM t ORDER BY t.b

    SELECT * EXCEPT (__order_0) FROM (SELECT a, rank() OVER (…) AS r, t.b AS __order_0 FROM t) ORDER BY __order_0
    """
    hidden: list[exp.Identifier] = []
    if isinstance(query, exp.Select) and not query.args.get("distinct"):
        for key in keys:
            if _is_selected(key.this, query):
                continue
            name = exp.to_identifier(f"__order_{len(hidden)}", quoted=True)
            query.append("expressions", exp.alias_(_unaliased(key.this, query), name))
            key.set("this", exp.column(name.copy()))
            hidden.append(name.copy())
    rows = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(_ROWS)))
    star = exp.Star(except_=hidden) if hidden else exp.Star()
    return exp.Select(expressions=[star], from_=exp.From(this=rows))


def _is_selected(key: exp.Expr, query: exp.Select) -> bool:
    """Whether a key of ORDER BY is a position, or reads only columns that the query selects."""
    if any(isinstance(part, exp.AggFunc | exp.Window | exp.Query) for part in key.walk()):
        return False
    names = {item.output_name.lower() for item in query.expressions}
    has_star = any(item.is_star for item in query.expressions)
    return all(not part.table and (has_star or part.name.lower() in names) for part in key.find_all(exp.Column))


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
    """A key of ORDER BY: positions and aliases of the SELECT list stand for what is there."""
    inner = key.this if isinstance(key, exp.Ordered) else key
    if not (isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit()):
        key.set("this", _unaliased(inner, node))
        return key
    at = int(inner.this)
    if any(item.is_star for item in node.expressions):
        inner.meta[_POSITION] = at
        return key
    if not 1 <= at <= len(node.expressions):
        raise _no_position(at, node)
    inner.replace(node.expressions[at - 1].unalias().copy())
    return key


def _unaliased(key: exp.Expr, node: exp.Expr) -> exp.Expr:
    """An expression in which names of items of the SELECT list stand for the items. Aggregates are about rows."""
    items = {item.alias.lower(): item.this for item in node.expressions if isinstance(item, exp.Alias)}

    def swapped(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.table or part.name.lower() not in items:
            return part
        if part.find_ancestor(exp.AggFunc, exp.Query) is not None:
            return part
        item = items[part.name.lower()].copy()
        return item if part is key else exp.paren(item, copy=False)

    return key.transform(swapped, copy=False) if items else key


def with_positions(node: exp.Select, scope: Scope) -> exp.Select:
    """The SELECT list with its stars as columns, where ORDER BY counts them: `SELECT * FROM t ORDER BY 2 LIMIT 5`."""
    qualify = node.args.get("qualify")
    positions = [] if qualify is None else [n for n in qualify.find_all(exp.Literal) if _POSITION in n.meta]
    if not positions:
        return node
    items = [item for listed in node.expressions for item in _listed(listed, scope)]
    for literal in positions:
        at = literal.meta[_POSITION]
        if not 1 <= at <= len(items):
            raise _no_position(at, node)
        literal.replace(items[at - 1].unalias().copy())
    return node


def _listed(item: exp.Expr, scope: Scope) -> Iterator[exp.Expr]:
    if not item.is_star:
        yield item
        return
    for c in scope.all(item.table or None if isinstance(item, exp.Column) else None, text_of(item)):
        qualifier = exp.to_identifier(c.qualifier, quoted=True) if c.qualifier else None
        yield exp.column(exp.to_identifier(c.name, quoted=True), table=qualifier)


def _no_position(at: int, node: exp.Expr) -> InvalidSql:
    hint = "name the column, or count from 1"
    return InvalidSql(f"ORDER BY {at}: there is no such column", detail=text_of(node), hint=hint)

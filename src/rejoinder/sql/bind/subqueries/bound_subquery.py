"""Bind the query of a subquery: it may name columns of all queries around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from rejoinder.errors import TypeMismatch
from rejoinder.ir.logical import Query
from rejoinder.sql.bind.groups.group_by import is_grouped
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.bind.subqueries.subquery_forms import SubqueryForm

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes

_WORDS = {"scalar": "a subquery as a value", "in": "IN", "any": "ANY", "all": "ALL"}


def bind_subquery(binder: Binder, scope: Scope, form: SubqueryForm, ctes: Ctes) -> Query:
    """Bind a subquery inside of a scope. Raises `TypeMismatch` if it has not as many columns as its form asks for."""
    node = _named(_bare(form.query))
    if form.form != "scalar" and isinstance(node, exp.Select) and not is_grouped(node):
        node = _without_copies(node, is_test=form.form == "exists")
    with binder.inside(scope):
        query = binder.query(node, ctes)
    wanted = 1 if form.form == "scalar" else len(form.values)
    if form.form == "exists" or len(query.outputs) == wanted:
        return query
    if form.form == "scalar":
        raise TypeMismatch(
            f"a subquery as a value has {len(query.outputs)} columns",
            detail=form.text,
            hint="select one column; LATERAL in FROM, or a subquery that is joined, gives several",
        )
    raise TypeMismatch(
        f"{_WORDS[form.form]} compares {wanted} with {len(query.outputs)} columns",
        detail=form.text,
        hint="the subquery needs one column for each value, as in (a, b) IN (SELECT x, y FROM …)",
    )


def _bare(node: exp.Expr) -> exp.Expr:
    """A query without parentheses around it."""
    while isinstance(node, exp.Subquery) and not any(
        value for name, value in node.args.items() if name != "this" and value not in (None, False, [])
    ):
        node = node.this
    return node


def _named(node: exp.Expr) -> exp.Expr:
    """A query whose columns nobody names: those that have no name of their own get one."""
    if isinstance(node, exp.SetOperation):
        return type(node)(**{**node.args, "this": _named(node.this), "expression": _named(node.expression)})
    if not isinstance(node, exp.Select):
        return node
    kept = (exp.Alias, exp.Column, exp.Star)
    items = [i if isinstance(i, kept) else exp.alias_(i, f"_{place}") for place, i in enumerate(node.expressions)]
    return node.select(*items, append=False)


def _without_copies(node: exp.Select, *, is_test: bool) -> exp.Select:
    """A query of which only matters which rows it has: without DISTINCT, and without NULL as a column of EXISTS."""
    node = node.copy()
    if not any(node.args.get(clause) for clause in ("limit", "offset", "qualify")):
        node.set("distinct", None)
    for item in node.expressions if is_test else ():
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Null):
            item.set("this", exp.Literal.number(1))
    return node

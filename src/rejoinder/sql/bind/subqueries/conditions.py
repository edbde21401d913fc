"""Conditions with subqueries, in WHERE, HAVING and the ON of inner joins.

A condition that is EXISTS or IN as a whole is a semi or an anti join with the subquery. Nothing has to be kept then but
the rows of both:

    SELECT … FROM o WHERE EXISTS (SELECT 1 FROM l WHERE l.k = o.k)
    SELECT … FROM o LEFT SEMI JOIN l ON l.k = o.k

NOT IN of one column holds if no row of the subquery makes the equality TRUE or NULL, so it is one anti join for each
way to do that: equal, NULL here, NULL there. In any other condition, a subquery is a value (`subquery_values`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.logical import Filter, Join, Node, Predicate
from rejoinder.sql.bind.conjuncts import conjuncts
from rejoinder.sql.bind.predicates import bind_conjunct, is_null
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.bind.subqueries.bound_subquery import bind_subquery
from rejoinder.sql.bind.subqueries.subquery_forms import SubqueryForm, has_subquery, read_condition
from rejoinder.sql.bind.subqueries.subquery_values import SubqueryValues
from rejoinder.sql.bind.subqueries.truth_values import equality
from rejoinder.sql.functions.expression_compiler import compile_expression

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes


def bind_where(binder: Binder, root: Node, scope: Scope, condition: exp.Expr, ctes: Ctes) -> tuple[Node, Scope]:
    """Keep the rows for which a condition is TRUE: plain parts first, then those with a subquery, in their order."""
    parts = list(conjuncts(condition))
    plain = [predicate for part in parts if not has_subquery(part) for predicate in bind_conjunct(part, scope)]
    rows = SubqueryValues(binder, Filter(root, tuple(plain)) if plain else root, scope, ctes)
    for part in parts:
        if has_subquery(part):
            rows.root = _restricted(rows, part)
    return rows.root, rows.scope


def _restricted(rows: SubqueryValues, part: exp.Expr) -> Node:
    form = read_condition(part)
    if form is not None and not (form.is_negated and len(form.values) > 1):
        return _joined(rows, form)
    bare = rows.without(part)
    predicates = bind_conjunct(bare, rows.scope)
    return Filter(rows.root, tuple(_on_rows(predicate, rows) for predicate in predicates))


def _on_rows(predicate: Predicate, rows: SubqueryValues) -> Predicate:
    """A predicate on a value that can fail is not a key: a key is evaluated for rows without a match, too."""
    if any(c.can_fail for c in rows.scope.computed if c.id in predicate.expression.columns):
        return replace(predicate, equality=None, order=None)
    return predicate


def _joined(rows: SubqueryValues, form: SubqueryForm) -> Node:
    """The semi or anti join of a condition."""
    nodes = [rows.without(value) for value in form.values]
    values = [compile_expression(node, rows.scope) for node in nodes]

    def subquery() -> tuple[Node, list[Expression]]:  # anew for each join, for identifiers of its own
        query = bind_subquery(rows.binder, rows.scope, form, rows.ctes)
        return query.root, [e for _, e in query.outputs] if values else []

    if not form.is_negated or not values:
        inner, outputs = subquery()
        on = tuple(equality(*pair, form) for pair in zip(nodes, values, outputs, strict=True))
        return Join(rows.root, inner, on, "anti" if form.is_negated else "semi")
    (node,), (value,) = nodes, values
    root = rows.root
    for way in _ways(node):
        inner, (output,) = subquery()
        on = (equality(node, value, output, form) if way == "equal" else is_null(value if way == "here" else output),)
        root = Join(root, inner, on, "anti")
    return root


def _ways(node: exp.Expr) -> Sequence[str]:
    """The ways in which a value is not surely different from a column of the subquery."""
    return ("equal", "there") if isinstance(node, exp.Literal | exp.Boolean) else ("equal", "here", "there")

"""Conditions with subqueries, in WHERE, HAVING and the ON of inner joins.

A condition that is EXISTS or IN as a whole is a semi or an anti join with the subquery. Nothing has to be kept then but
the rows of both:

    SELECT … FROM o WHERE EXISTS (SELECT 1 FROM l WHERE l.k = o.k)
    SELECT … FROM o LEFT SEMI JOIN l ON l.k = o.k

NOT IN of one column holds if no row of the subquery makes the equality TRUE or NULL, so it is one anti join for each
way to do that: equal, NULL here, NULL there. The latter two are left out where a column is never NULL; they ask only
whether the subquery has any such row. In any other condition, a subquery is a value (`subquery_values`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.logical import Filter, Join, Node, Predicate
from rejoinder.plan.unnest.tree_columns import free_columns
from rejoinder.sql.bind.conjuncts import conjuncts
from rejoinder.sql.bind.predicates import bind_conjunct, is_null
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.bind.subqueries.bound_subquery import bind_subquery
from rejoinder.sql.bind.subqueries.never_null import is_never_null
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
    for way in ("equal", "here", "there"):
        inner, (output,) = subquery()
        if way == "equal":
            root = Join(root, inner, (equality(node, value, output, form),), "anti")
        elif way == "here" and not is_never_null(value, rows.root, rows.binder.catalog):
            root = Join(root, _presence(rows, inner), (is_null(value),), "anti")
        elif way == "there" and not is_never_null(output, inner, rows.binder.catalog):
            root = Join(root, _presence(rows, Filter(inner, (is_null(output),))), (), "anti")
    return root


def _presence(rows: SubqueryValues, inner: Node) -> Node:
    """What a test whether a subquery has rows reads: one row at most, unless the subquery has rows for keys of ours.

    Without keys, each of our rows would meet every row of the subquery.
    """
    return inner if free_columns(inner) else rows.presence(inner)

"""Subqueries in the ON of LEFT, RIGHT, FULL, SEMI and ANTI joins: columns of the side that they read.

    SELECT … FROM a LEFT JOIN b ON a.k = b.k AND b.x > (SELECT avg(x) FROM c WHERE c.k = b.k)
    SELECT … FROM a LEFT JOIN (SELECT b.*, (SELECT avg(x) FROM c WHERE c.k = b.k) AS v FROM b) b ON a.k = b.k AND b.x > v

One that reads both sides is computed for each row of the second side and each value of the first:

    SELECT … FROM a LEFT JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM c WHERE c.x BETWEEN a.x AND b.x)
    SELECT … FROM a LEFT JOIN (SELECT *, EXISTS (SELECT 1 FROM c WHERE c.x BETWEEN d.x AND b.x) AS v
                               FROM b CROSS JOIN (SELECT DISTINCT x FROM a) d) b ON a.k = b.k AND a.x <=> d.x AND v
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rejoinder.errors import Unsupported
from rejoinder.ir.expression import column
from rejoinder.ir.logical import Join, JoinKind, Predicate
from rejoinder.plan.unnest.domains import domain_of, same
from rejoinder.plan.unnest.tree_columns import columns_of, free_columns
from rejoinder.sql.bind.scope import Scope, Side
from rejoinder.sql.bind.subqueries.bound_subquery import bind_subquery
from rejoinder.sql.bind.subqueries.subquery_forms import SubqueryForm, has_subquery, read_form
from rejoinder.sql.bind.subqueries.subquery_values import SubqueryValues
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import text_of

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes


def attach_to_sides(
    binder: Binder, first: Side, second: Side, on: exp.Expr, kind: JoinKind, ctes: Ctes
) -> tuple[Side, Side, exp.Expr, tuple[Predicate, ...]]:
    """Both sides with the subqueries of a condition as columns, the condition on these, and what it needs besides."""
    links: list[Predicate] = []

    def swap(part: exp.Expr) -> exp.Expr:
        nonlocal first, second
        form = read_form(part)
        if form is None:
            return part
        read = _columns_read(binder, first.scope.beside(second.scope), form, ctes)
        ours = sorted(read & columns_of(first.root).keys())
        if not ours:
            second, reference = _attached(binder, second, first.scope, part, ctes)
        elif not read & columns_of(second.root).keys():
            first, reference = _attached(binder, first, second.scope, part, ctes)
        elif kind in ("full", "full anti"):
            raise Unsupported(
                "a subquery that reads both sides of a FULL JOIN is not supported in its ON",
                detail=text_of(part),
                hint="let it read one side, or compute it in a subquery that is joined",
            )
        else:
            domain, names = domain_of(first.root, ours, next(binder.numbers), exact=False)
            known = replace(first.scope, columns=tuple(replace(c, id=names.get(c.id, c.id)) for c in first.scope.columns))
            types = columns_of(first.root)
            links.extend(same(column(i, types[i]), column(names[i], types[i])) for i in ours)
            paired = Side(Join(second.root, domain, ()), second.scope)
            second, reference = _attached(binder, paired, known, part, ctes)
        return reference

    condition = on.transform(swap)
    return first, second, condition, tuple(links)


def _attached(binder: Binder, side: Side, other: Scope, part: exp.Expr, ctes: Ctes) -> tuple[Side, exp.Expr]:
    rows = SubqueryValues(binder, side.root, side.scope.beside(other), ctes)
    reference = rows.without(part)
    return Side(rows.root, replace(side.scope, computed=rows.scope.computed)), reference


def _columns_read(binder: Binder, scope: Scope, form: SubqueryForm, ctes: Ctes) -> set[str]:
    """The columns of both sides that a subquery and the values compared with it read."""
    query = bind_subquery(binder, scope, form, ctes)
    read = {i for _, e in query.outputs for i in e.columns} - columns_of(query.root).keys() | free_columns(query.root)
    for value in form.values:
        if has_subquery(value):
            raise Unsupported(
                "a subquery on the left side of IN is not supported in ON",
                detail=form.text,
                hint="compute it in a subquery that is joined",
            )
        read |= set(compile_expression(value, scope).columns)
    return read

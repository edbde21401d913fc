"""Subqueries in the ON of a join. Those of an inner join are conditions on its rows, as those of WHERE.

In the other joins they are columns of the side that they read:

    SELECT … FROM a LEFT JOIN b ON a.k = b.k AND b.x > (SELECT avg(x) FROM c WHERE c.k = b.k)
    SELECT … FROM a LEFT JOIN (SELECT *, (SELECT avg(x) FROM c WHERE c.k = b.k) AS v FROM b) b ON a.k = b.k AND b.x > v

One that reads both sides is computed for each row of the padded side and each value of the other:

    SELECT … FROM a LEFT JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM c WHERE c.x BETWEEN a.x AND b.x)
    SELECT … FROM a LEFT JOIN (SELECT *, EXISTS (SELECT 1 FROM c WHERE c.x BETWEEN d.x AND b.x) AS v
                               FROM b CROSS JOIN (SELECT DISTINCT x FROM a) d) b ON a.k = b.k AND a.x <=> d.x AND v
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rejoinder.errors import Unsupported
from rejoinder.ir.logical import Join, JoinKind
from rejoinder.plan.unnest.domains import domain_of
from rejoinder.plan.unnest.tree_columns import columns_of, free_columns
from rejoinder.sql.bind.conjuncts import conjuncts
from rejoinder.sql.bind.relations.arrival_joins import is_at_arrival
from rejoinder.sql.bind.relations.as_of_joins import is_as_of
from rejoinder.sql.bind.relations.joins import combine, join_kind
from rejoinder.sql.bind.scope import Column, Scope, Side
from rejoinder.sql.bind.subqueries.bound_subquery import bind_subquery
from rejoinder.sql.bind.subqueries.conditions import bind_where
from rejoinder.sql.bind.subqueries.subquery_forms import SubqueryForm, has_subquery, read_form
from rejoinder.sql.bind.subqueries.subquery_values import SubqueryValues
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import marked_name, text_of

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes


def combine_with_subqueries(
    binder: Binder, left: Side, right: Side, node: exp.Join, ctes: Ctes, event_time: str | None
) -> Side:
    """Bind a JOIN (or comma) of two sides, whose ON may have subqueries. Raises a `PlanningError`."""
    on = node.args.get("on")
    if on is None or not has_subquery(on):
        return combine(left, right, node, binder.numbers, event_time)
    if is_at_arrival(node) or is_as_of(node):
        hint = "put the condition into WHERE, or into a subquery that is joined"
        raise Unsupported("a subquery in the ON of a join as of a time is not supported", detail=text_of(on), hint=hint)
    kind, is_swapped = join_kind(node)
    if kind == "inner":
        parts = list(conjuncts(on))
        joined = combine(left, right, _with_on(node, [p for p in parts if not has_subquery(p)]), binder.numbers)
        tested = exp.and_(*(part for part in parts if has_subquery(part)))
        return Side(*bind_where(binder, joined.root, joined.scope, tested, ctes))
    sides = _Sides(binder, *((right, left) if is_swapped else (left, right)), kind, ctes)
    condition = on.transform(sides.swap)
    first, second = (sides.second, sides.first) if is_swapped else (sides.first, sides.second)
    return combine(first, second, _with_on(node, [condition, *sides.links]), binder.numbers)


def _with_on(node: exp.Join, parts: list[exp.Expr]) -> exp.Join:
    bare = node.copy()
    bare.set("on", exp.and_(*parts) if parts else exp.true())
    return bare


@dataclass
class _Sides:
    """The sides of an outer, semi or anti join as the subqueries of its ON become columns of them."""

    binder: Binder
    first: Side
    second: Side
    kind: JoinKind
    ctes: Ctes

    def __post_init__(self) -> None:
        self.links: list[exp.Expr] = []

    def swap(self, part: exp.Expr) -> exp.Expr:
        """A column in the place of a subquery."""
        form = read_form(part)
        if form is None:
            return part
        read = self._columns_read(form)
        ours = sorted(read & columns_of(self.first.root).keys())
        if not ours:
            self.second, reference = self._attached(self.second, self.first.scope, part)
        elif not read & columns_of(self.second.root).keys():
            self.first, reference = self._attached(self.first, self.second.scope, part)
        elif self.kind in ("full", "full anti"):
            raise Unsupported(
                "a subquery that reads both sides of a FULL JOIN is not supported in its ON",
                detail=text_of(part),
                hint="let it read one side, or compute it in a subquery that is joined",
            )
        else:
            known = self._paired(ours)
            self.second, reference = self._attached(self.second, known, part)
        return reference

    def _paired(self, ours: list[str]) -> Scope:
        """Pair the second side with the values of columns of the first one; give these as a scope."""
        domain, names = domain_of(self.first.root, ours, next(self.binder.numbers), exact=False)
        scope = self.first.scope
        paired = self.second.scope
        for c in (c for c in scope.columns if c.id in names):
            value = Column("", marked_name(c.name, next(self.binder.numbers)), names[c.id], c.type)
            paired = paired.computing(value)
            here = exp.column(exp.to_identifier(c.name, quoted=True), table=exp.to_identifier(c.qualifier, quoted=True))
            there = exp.column(exp.to_identifier(value.name, quoted=True))
            self.links.append(exp.NullSafeEQ(this=here, expression=there))
        self.second = Side(Join(self.second.root, domain, ()), paired)
        return scope.with_columns([replace(c, id=names.get(c.id, c.id)) for c in scope.columns])

    def _attached(self, side: Side, other: Scope, part: exp.Expr) -> tuple[Side, exp.Expr]:
        rows = SubqueryValues(self.binder, side.root, side.scope.beside(other), self.ctes)
        reference = rows.without(part)
        own = [c for c in rows.scope.computed if c not in other.computed]
        return Side(rows.root, replace(side.scope, computed=tuple(own))), reference

    def _columns_read(self, form: SubqueryForm) -> set[str]:
        """The columns of both sides that a subquery and the values compared with it read."""
        scope = self.first.scope.beside(self.second.scope)
        query = bind_subquery(self.binder, scope, form, self.ctes)
        own = columns_of(query.root).keys()
        read = {i for _, e in query.outputs for i in e.columns if i not in own} | free_columns(query.root)
        for value in form.values:
            if has_subquery(value):
                raise Unsupported(
                    "a subquery on the left side of IN is not supported in the ON of this join",
                    detail=form.text,
                    hint="compute it in a subquery that is joined",
                )
            read |= set(compile_expression(value, scope).columns)
        return read

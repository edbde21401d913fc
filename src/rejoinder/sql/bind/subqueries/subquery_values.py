"""Subqueries as values: each becomes a column of the rows that it is computed for.

The rows are joined with the subquery as if it were LATERAL, and the expression has a column in its place. `plan.unnest`
makes joins of independent relations of that.

    SELECT o.id, (SELECT max(x) FROM l WHERE l.k = o.k) + 1 FROM o
    SELECT o.id, q.v + 1 FROM o LEFT JOIN LATERAL (SELECT max(x) AS v FROM l WHERE l.k = o.k) q ON TRUE

Equal subqueries of one query are one column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column, literal
from rejoinder.ir.expressions.operators import at_most_one, is_not_null
from rejoinder.ir.identities import column_id, column_text
from rejoinder.ir.logical import Aggregate, AtMostOne, Distinct, Filter, Join, Node, Predicate, Project, Query
from rejoinder.plan.unnest.tree_columns import columns_of, free_columns, identity, outer_references
from rejoinder.sql.bind.groups.aggregate_functions import aggregates_in
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.bind.subqueries.bound_subquery import bind_subquery
from rejoinder.sql.bind.subqueries.subquery_forms import SubqueryForm, has_subquery, read_form
from rejoinder.sql.bind.subqueries.truth_values import any_value, in_value
from rejoinder.sql.functions.names.expression_names import SUBQUERY
from rejoinder.sql.functions.output_names import subquery_name
from rejoinder.sql.parse.clauses import marked_name, text_of

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes


@dataclass
class SubqueryValues:
    """The rows of a query as subqueries in its expressions are bound: `root` and `scope` grow by their columns."""

    binder: Binder
    root: Node
    scope: Scope
    ctes: Ctes

    def without(self, node: exp.Expr) -> exp.Expr:
        """An expression with columns in the place of its subqueries. Raises a `PlanningError`."""
        if not has_subquery(node):
            return node

        def swap(part: exp.Expr) -> exp.Expr:
            form = read_form(part)
            return part if form is None else self._reference(form)

        return node.transform(swap)

    def _reference(self, form: SubqueryForm) -> exp.Expr:
        known = self.scope.subquery(form.text)
        if known is None:
            value, output_name = self._value(form)
            number = next(self.binder.numbers)
            known = Column("", marked_name(form.text, number), column_text(number, "subquery"), value.type)
            known = replace(known, text=form.text, can_fail=value.can_fail, output_name=output_name)
            self.root = Project(self.root, (*identity(columns_of(self.root)).items(), (known.id, value)))
            self.scope = self.scope.computing(known)
        reference = exp.column(exp.to_identifier(known.name, quoted=True))
        reference.meta[SUBQUERY] = known.output_name
        return reference

    def _value(self, form: SubqueryForm) -> tuple[Expression, str | None]:
        """The value of a subquery, and Spark's name for it."""
        values = tuple(self.without(value) for value in form.values)
        query = bind_subquery(self.binder, self.scope, form, self.ctes)
        named = {c.id: c.name for c in self.scope.columns}
        read = outer_references(Project(query.root, query.outputs))
        name = subquery_name(form.form, values, [named.get(i, column_id(i).name) for i in read])
        value = self._bound_value(form, values, query)
        return value, f"(NOT {name})" if name and form.is_negated else name

    def _bound_value(self, form: SubqueryForm, values: tuple[exp.Expr, ...], query: Query) -> Expression:
        match form.form:
            case "scalar":
                return self._scalar(query, form)
            case "exists":
                return Expression(is_not_null(self.flag(query.root).node), form.text)
            case "in":
                return in_value(self, form, values, query)
            case "any" | "all":
                return any_value(self, form, values, query)

    def _scalar(self, query: Query, form: SubqueryForm) -> Expression:
        ((_, value),) = query.outputs
        root: Node = query.root
        own = columns_of(root)
        number = next(self.binder.numbers)
        outputs = [(column_text(number, "value"), value)]
        if _has_one_row_at_most(root):
            self.join(Project(root, tuple(outputs)))
            return column(*_typed(outputs[0]))
        many, read = column_text(number, "many"), [i for i in value.columns if i in own]
        if not read:
            read = [column_text(number, "row")]
            root = Project(root, ((read[0], literal(True, pa.bool_())),))
            own = columns_of(root)
        outputs.append((many, column(many, pa.bool_())))
        read_by = free_columns(Project(root, tuple(outputs[:1])))
        only = AtMostOne(root, tuple((i, own[i]) for i in read), (), many)
        self.join(Project(only, tuple(outputs)))
        several, single = (column(*_typed(output)).node for output in reversed(outputs))
        return Expression(at_most_one(several, single, text_of(form.query), self._keys(read_by)), form.text)

    def _keys(self, ids: frozenset[str]) -> dict[str, nodes.Node]:
        """Columns of the rows by the names that the user knows."""
        named = {c.id: f"{c.qualifier}.{c.name}" if c.qualifier else c.name for c in self.scope.columns}
        return {named[i]: nodes.Column(i, kind) for i, kind in columns_of(self.root).items() if i in ids & named.keys()}

    def join(self, right: Node, on: tuple[Predicate, ...] = ()) -> None:
        """Join the rows with the rows of a subquery, of which at most one counts for each, or with NULLs."""
        self.root = Join(self.root, right, on, "left")

    def flag(self, root: Node, *conditions: Expression) -> Expression:
        """A column that is TRUE where a subquery has rows that satisfy conditions, and NULL elsewhere."""
        if conditions:
            root = Filter(root, tuple(Predicate(condition) for condition in conditions))
        present = self.presence(root)
        self.join(present)
        return column(*present.columns[0])

    def presence(self, root: Node) -> Distinct:
        """One row, TRUE, if a subquery has rows; else none."""
        flag = column_text(next(self.binder.numbers), "exists")
        tested = Project(root, ((flag, literal(True, pa.bool_())),))
        return Distinct(tested, ((flag, pa.bool_()),))


def _typed(output: tuple[str, Expression]) -> tuple[str, pa.DataType]:
    return output[0], output[1].type


def _has_one_row_at_most(node: Node) -> bool:
    """Whether the text of a query proves that it has no second row: that of an aggregate without GROUP BY."""
    match node:
        case Aggregate():
            return not node.keys
        case Project() | Filter():
            return _has_one_row_at_most(node.input)
        case Join() if node.kind in ("inner", "left"):
            return _has_one_row_at_most(node.left) and _has_one_row_at_most(node.right)
        case Join():
            return node.kind in ("semi", "anti") and _has_one_row_at_most(node.left)
        case _:
            return False


def without_subqueries(
    binder: Binder, root: Node, scope: Scope, node: exp.Select, ctes: Ctes, *, in_aggregates: bool = False
) -> tuple[Node, Scope, exp.Select]:
    """Rows with the subqueries of a SELECT list and of QUALIFY as columns, and the SELECT on these.

    `in_aggregates`: those in GROUP BY and in the arguments of aggregates, which are about rows and not about groups.
    """
    if not any(map(has_subquery, [*_listed(node), *([node.args["group"]] if node.args.get("group") else [])])):
        return root, scope, node
    rows = SubqueryValues(binder, root, scope, ctes)
    bare = node.copy()
    if in_aggregates:
        for call in [call for part in _listed(bare) for call in aggregates_in(part)]:
            if has_subquery(call):
                call.replace(rows.without(call))
        if bare.args.get("group"):
            bare.set("group", rows.without(bare.args["group"]))
    else:
        bare.set("expressions", [rows.without(item) for item in node.expressions])
        if bare.args.get("qualify"):
            bare.set("qualify", rows.without(bare.args["qualify"]))
    return rows.root, rows.scope, bare


def _listed(node: exp.Select) -> list[exp.Expr]:
    conditions = (node.args.get(name) for name in ("having", "qualify"))
    return [*node.expressions, *(condition.this for condition in conditions if condition is not None)]

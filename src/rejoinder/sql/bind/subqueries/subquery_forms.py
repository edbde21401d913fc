"""The forms in which a subquery stands in an expression: (query), EXISTS, IN, ANY and ALL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from rejoinder.sql.parse.clauses import text_of

Form = Literal["scalar", "exists", "in", "any", "all"]
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_OPPOSITE: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}


@dataclass(frozen=True)
class SubqueryForm:
    """A subquery in its form, as it is written: `values` are compared with its columns by `comparison`."""

    form: Form
    text: str
    query: exp.Query
    values: tuple[exp.Expr, ...] = ()
    comparison: type[exp.Binary] = exp.EQ
    is_negated: bool = False


def read_form(node: exp.Expr) -> SubqueryForm | None:
    """Read a node as a subquery in its form; None if it is none. `= ANY` is IN, and ALL is NOT of the opposite ANY."""
    text = text_of(node)
    if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
        return SubqueryForm("exists", text, node.this)
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        return SubqueryForm("in", text, node.args["query"], _values(node.this))
    if isinstance(node, _COMPARISONS):
        quantified = node.expression
        if isinstance(quantified, exp.Any | exp.All) and isinstance(quantified.this, exp.Query):
            is_all = isinstance(quantified, exp.All)
            comparison = _OPPOSITE[type(node)] if is_all else type(node)
            form: Form = "in" if comparison is exp.EQ else "any"
            return SubqueryForm(form, text, quantified.this, _values(node.this), comparison, is_negated=is_all)
        return None
    if isinstance(node, exp.Query):
        return SubqueryForm("scalar", text, node)
    return None


def read_condition(node: exp.Expr) -> SubqueryForm | None:
    """Read a whole condition as [NOT] EXISTS or [NOT] IN; None if it is something else."""
    is_negated = False
    bare = node
    while isinstance(bare, exp.Not | exp.Paren):
        is_negated ^= isinstance(bare, exp.Not)
        bare = bare.this
    form = read_form(bare)
    if form is None or form.form not in ("exists", "in"):
        return None
    return SubqueryForm(form.form, text_of(node), form.query, form.values, exp.EQ, form.is_negated != is_negated)


def has_subquery(node: exp.Expr) -> bool:
    """Say whether a query stands in an expression."""
    return node.find(exp.Query) is not None


def _values(value: exp.Expr) -> tuple[exp.Expr, ...]:
    bare = value.unnest()
    return tuple(bare.expressions) if isinstance(bare, exp.Tuple) else (bare,)

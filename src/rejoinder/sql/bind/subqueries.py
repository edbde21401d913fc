"""Rewrite EXISTS and IN in WHERE as semi and anti joins with the subquery.

    WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)   →  a SEMI JOIN b ON b.k = a.k
    WHERE a.k IN (SELECT k FROM b WHERE b.n > 1)     →  a SEMI JOIN (b WHERE n > 1) ON a.k = b.k
    WHERE NOT EXISTS (…)                             →  a ANTI JOIN b ON …
    WHERE a.k NOT IN (SELECT k FROM b)               →  a ANTI JOIN b ON a.k = b.k
                                                          ANTI JOIN b ON a.k IS NULL
                                                          ANTI JOIN b ON b.k IS NULL

A correlated condition, one that names a column of the outer query, moves from the subquery's WHERE to the join. NOT IN
is true only if no row of the subquery makes the equality TRUE or NULL; hence the three anti joins. DISTINCT in the
subquery has no effect and is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from rejoinder.errors import TypeMismatch, UnknownName, Unsupported
from rejoinder.ir.expression import Expression
from rejoinder.ir.logical import Filter, Join, Node, Predicate
from rejoinder.sql.bind.group_by import is_grouped
from rejoinder.sql.bind.predicates import bind_conjunct, conjuncts, equal, is_null
from rejoinder.sql.bind.scope import Scope, correlation_not_supported
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import refuse_subqueries, refuse_unread_clauses, text_of

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes

_NOT_DIFFERENT = ("equal", "outer is null", "inner is null")
"""The cases in which a value of NOT IN is not known to differ from a row of the subquery."""


@dataclass(frozen=True)
class SubqueryCondition:
    """A condition `[NOT] EXISTS (query)`, or `values [NOT] IN (query)`."""

    text: str
    values: tuple[exp.Expr, ...]
    query: exp.Query
    is_negated: bool


@dataclass(frozen=True)
class BoundSubquery:
    """A bound subquery: its rows, its SELECT list, and its correlated conditions."""

    root: Node
    outputs: tuple[Expression, ...]
    correlated: tuple[Predicate, ...]


def bind_where(binder: Binder, root: Node, scope: Scope, condition: exp.Expr, ctes: Ctes) -> Node:
    """Bind a WHERE: plain conditions first, then those with a subquery in their order."""
    node, correlated = _bind_where(binder, root, scope, condition, ctes)
    assert not correlated, "the outermost WHERE has no outer query"
    return node


def _bind_where(
    binder: Binder, root: Node, scope: Scope, condition: exp.Expr, ctes: Ctes
) -> tuple[Node, tuple[Predicate, ...]]:
    """Return the filtered rows, and the correlated conditions, which the join with the outer query checks."""
    outer_columns = {c.id for c in scope.outer.columns} if scope.outer is not None else set()
    plain: list[Predicate] = []
    correlated: list[Predicate] = []
    subqueries: list[SubqueryCondition] = []
    for part in conjuncts(condition):
        subquery = _subquery_condition(part)
        if subquery is not None:
            subqueries.append(subquery)
            continue
        for predicate in bind_conjunct(part, scope):
            (correlated if outer_columns.intersection(predicate.expression.columns) else plain).append(predicate)
    if plain:
        root = Filter(root, tuple(plain))
    uncorrelated = replace(scope, reaches_out=False)
    for subquery in subqueries:
        root = _join(binder, root, uncorrelated, subquery, ctes)
    return root, tuple(correlated)


def _subquery_condition(node: exp.Expr) -> SubqueryCondition | None:
    """Read a conjunct as EXISTS or IN with a subquery; None for other conditions."""
    text, is_negated = text_of(node), False
    while isinstance(node, exp.Not | exp.Paren):
        is_negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
        return SubqueryCondition(text, (), node.this, is_negated)
    query = node.args.get("query") if isinstance(node, exp.In) else None
    if query is None:
        return None
    value = node.this
    values = tuple(value.expressions) if isinstance(value, exp.Tuple) else (value.unnest(),)
    return SubqueryCondition(text, values, query, is_negated)


def _join(binder: Binder, root: Node, scope: Scope, condition: SubqueryCondition, ctes: Ctes) -> Node:
    for value in condition.values:
        refuse_subqueries(value)
    values = [compile_expression(value, scope) for value in condition.values]
    if not condition.is_negated or not values:
        inner = _bind_subquery(binder, scope, condition, ctes)
        pairs = zip(condition.values, values, inner.outputs, strict=True)
        equalities = [_equal(*pair, condition) for pair in pairs]
        return Join(root, inner.root, (*inner.correlated, *equalities), "anti" if condition.is_negated else "semi")
    if len(values) > 2:
        raise Unsupported(
            f"NOT IN with {len(values)} columns is not supported",
            detail=condition.text,
            hint="write NOT EXISTS (SELECT 1 FROM … WHERE … = … AND …) if no column can be NULL",
        )
    is_constant = [isinstance(node, exp.Literal | exp.Boolean) for node in condition.values]
    for cases in product(_NOT_DIFFERENT, repeat=len(values)):
        if any(case == "outer is null" and never for case, never in zip(cases, is_constant, strict=True)):
            continue
        inner = _bind_subquery(binder, scope, condition, ctes)  # bound again: each join needs its own column ids
        sides = zip(cases, condition.values, values, inner.outputs, strict=True)
        predicates = [_not_different(*side, condition) for side in sides]
        root = Join(root, inner.root, (*inner.correlated, *predicates), "anti")
    return root


def _not_different(
    case: str, node: exp.Expr, value: Expression, output: Expression, condition: SubqueryCondition
) -> Predicate:
    """Return the predicate of one case in which a value may equal a column of the subquery."""
    equality = _equal(node, value, output, condition)
    return equality if case == "equal" else is_null(value if case == "outer is null" else output)


def _equal(node: exp.Expr, value: Expression, output: Expression, condition: SubqueryCondition) -> Predicate:
    names = text_of(node), output.text
    try:
        return equal(value, output, node, names, f"{names[0]} = {names[1]}")
    except TypeMismatch as failure:
        raise TypeMismatch(failure.fact, detail=condition.text, hint=failure.hint) from failure


def _bind_subquery(binder: Binder, scope: Scope, condition: SubqueryCondition, ctes: Ctes) -> BoundSubquery:
    node: exp.Expr = condition.query
    while isinstance(node, exp.Subquery) and set(_clauses(node)) <= {"this"}:
        node = node.this
    node = _with_names(node)
    if isinstance(node, exp.Select) and _is_plain(node):
        inner = _bind_plain(binder, node, scope, condition, binder.with_ctes(node, ctes))
    else:
        with _correlation_errors(node, scope):
            query = binder.query(node, ctes)
        inner = BoundSubquery(query.root, tuple(e for _, e in query.outputs) if condition.values else (), ())
    if len(inner.outputs) != len(condition.values):
        raise TypeMismatch(
            f"IN compares {len(condition.values)} with {len(inner.outputs)} columns",
            detail=condition.text,
            hint="the subquery needs one column for each value, as in (a, b) IN (SELECT x, y FROM …)",
        )
    return inner


def _with_names(node: exp.Expr) -> exp.Expr:
    """Name the columns that have no name: nothing refers to a column of EXISTS or IN by name."""
    if isinstance(node, exp.SetOperation):
        return type(node)(**{**node.args, "this": _with_names(node.this), "expression": _with_names(node.expression)})
    if not isinstance(node, exp.Select):
        return node
    named = (exp.Alias, exp.Column, exp.Star)
    items = [i if isinstance(i, named) else exp.alias_(i, f"_{n}") for n, i in enumerate(node.expressions)]
    return node.select(*items, append=False)


def _bind_plain(
    binder: Binder, node: exp.Select, outer: Scope, condition: SubqueryCondition, ctes: Ctes
) -> BoundSubquery:
    """Bind a subquery without aggregates. Its WHERE and SELECT list may name columns of the outer query."""
    refuse_unread_clauses(node)
    with _correlation_errors(node, outer):
        root, own = binder.sources(node, ctes)
    scope = own.inside(outer)
    correlated: tuple[Predicate, ...] = ()
    where = node.args.get("where")
    if where is not None:
        root, correlated = _bind_where(binder, root, scope, where.this, ctes)
    if condition.values:
        return BoundSubquery(root, tuple(e for _, e in binder.outputs(node, scope)), correlated)
    for item in node.expressions:  # EXISTS ignores their values, but they must be valid
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            own.all(item.table if isinstance(item, exp.Column) else None, text_of(item))
            continue
        refuse_subqueries(item)
        compile_expression(item.this if isinstance(item, exp.Alias) else item, scope)
    return BoundSubquery(root, (), correlated)


def _is_plain(node: exp.Select) -> bool:
    if is_grouped(node) or set(_clauses(node)) & {"qualify", "limit", "offset"}:
        return False
    return not any(item.find(exp.Window) for item in node.expressions)


def _clauses(node: exp.Expr) -> list[str]:
    return [name.rstrip("_") for name, value in node.args.items() if value not in (None, False, [])]


@contextmanager
def _correlation_errors(node: exp.Expr, outer: Scope) -> Iterator[None]:
    """Explain an unknown column that exists in the outer query."""
    try:
        yield
    except UnknownName as failure:
        for column in node.find_all(exp.Column):
            text = column.sql(dialect="spark")
            if failure.fact == f"there is no column `{text}`" and outer.knows(column):
                raise correlation_not_supported(text, text_of(node)) from failure
        raise

"""EXISTS and IN as conditions of WHERE: each becomes a semi or an anti join with what the subquery reads.

A condition of the subquery that names a column of the query around (a correlated one) moves to the join. NOT IN holds
if no row of the subquery makes the equality TRUE or NULL, so it is one anti join for each way to do that: equal, NULL
here, NULL there. The subquery's DISTINCT changes nothing and is passed over.
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
from rejoinder.sql.bind.scope import Scope, correlation_not_offered
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import refuse_subqueries, refuse_unread_clauses, text_of

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes

_WAYS = ("equal", "null here", "null there")


@dataclass(frozen=True)
class Test:
    """A condition of the form [NOT] EXISTS (query), or values [NOT] IN (query)."""

    __test__ = False

    text: str
    values: tuple[exp.Expr, ...]
    query: exp.Query
    is_negated: bool


@dataclass(frozen=True)
class Inner:
    """A bound subquery: its rows, its SELECT list, and the conditions that link it with the query around."""

    root: Node
    outputs: tuple[Expression, ...]
    links: tuple[Predicate, ...]


def restrict(binder: Binder, root: Node, scope: Scope, condition: exp.Expr, ctes: Ctes) -> Node:
    """Keep the rows for which a WHERE is true: plain conditions first, then those with a subquery, in their order."""
    node, links = _restricted(binder, root, scope, condition, ctes)
    assert not links
    return node


def _restricted(
    binder: Binder, root: Node, scope: Scope, condition: exp.Expr, ctes: Ctes
) -> tuple[Node, tuple[Predicate, ...]]:
    """The restricted rows, and the conditions that the query around has to check."""
    around = {c.id for c in scope.outer.columns} if scope.outer is not None else set()
    plain: list[Predicate] = []
    links: list[Predicate] = []
    tests: list[Test] = []
    for part in conjuncts(condition):
        test = _read(part)
        if test is not None:
            tests.append(test)
            continue
        for predicate in bind_conjunct(part, scope):
            (links if around.intersection(predicate.expression.columns) else plain).append(predicate)
    if plain:
        root = Filter(root, tuple(plain))
    own = replace(scope, reaches_out=False)
    for test in tests:
        root = _join(binder, root, own, test, ctes)
    return root, tuple(links)


def _read(node: exp.Expr) -> Test | None:
    text, is_negated = text_of(node), False
    while isinstance(node, exp.Not | exp.Paren):
        is_negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
        return Test(text, (), node.this, is_negated)
    query = node.args.get("query") if isinstance(node, exp.In) else None
    if query is None:
        return None
    value = node.this
    values = tuple(value.expressions) if isinstance(value, exp.Tuple) else (value.unnest(),)
    return Test(text, values, query, is_negated)


def _join(binder: Binder, root: Node, scope: Scope, test: Test, ctes: Ctes) -> Node:
    for value in test.values:
        refuse_subqueries(value)
    values = [compile_expression(value, scope) for value in test.values]
    if not test.is_negated or not values:
        inner = _inner(binder, scope, test, ctes)
        equalities = [_equal(*each, test) for each in zip(test.values, values, inner.outputs, strict=True)]
        return Join(root, inner.root, (*inner.links, *equalities), "anti" if test.is_negated else "semi")
    if len(values) > 2:
        raise Unsupported(
            f"NOT IN with {len(values)} columns is not supported",
            detail=test.text,
            hint="write NOT EXISTS (SELECT 1 FROM … WHERE … = … AND …) if no column can be NULL",
        )
    is_constant = [isinstance(node, exp.Literal | exp.Boolean) for node in test.values]
    for ways in product(_WAYS, repeat=len(values)):
        if any(way == "null here" and never for way, never in zip(ways, is_constant, strict=True)):
            continue
        inner = _inner(binder, scope, test, ctes)  # anew, for identifiers of its own
        tried = [_try(*each, test) for each in zip(ways, test.values, values, inner.outputs, strict=True)]
        root = Join(root, inner.root, (*inner.links, *tried), "anti")
    return root


def _try(way: str, node: exp.Expr, value: Expression, output: Expression, test: Test) -> Predicate:
    """One way in which a value is not surely different from a column of the subquery."""
    found = _equal(node, value, output, test)
    return found if way == "equal" else is_null(value if way == "null here" else output)


def _equal(node: exp.Expr, value: Expression, output: Expression, test: Test) -> Predicate:
    names = text_of(node), output.text
    try:
        return equal(value, output, node, names, f"{names[0]} = {names[1]}")
    except TypeMismatch as failure:
        raise TypeMismatch(failure.fact, detail=test.text, hint=failure.hint) from failure


def _inner(binder: Binder, scope: Scope, test: Test, ctes: Ctes) -> Inner:
    node: exp.Expr = test.query
    while isinstance(node, exp.Subquery) and set(_given(node)) <= {"this"}:
        node = node.this
    node = _named(node)
    if isinstance(node, exp.Select) and _is_plain(node):
        inner = _plain_inner(binder, node, scope, test, binder.with_ctes(node, ctes))
    else:
        with _explained(node, scope):
            query = binder.query(node, ctes)
        inner = Inner(query.root, tuple(e for _, e in query.outputs) if test.values else (), ())
    if len(inner.outputs) != len(test.values):
        raise TypeMismatch(
            f"IN compares {len(test.values)} with {len(inner.outputs)} columns",
            detail=test.text,
            hint="the subquery needs one column for each value, as in (a, b) IN (SELECT x, y FROM …)",
        )
    return inner


def _named(node: exp.Expr) -> exp.Expr:
    """A query whose columns nobody names: those that have no name of their own get one."""
    if isinstance(node, exp.SetOperation):
        return type(node)(**{**node.args, "this": _named(node.this), "expression": _named(node.expression)})
    if not isinstance(node, exp.Select):
        return node
    kept = (exp.Alias, exp.Column, exp.Star)
    items = [i if isinstance(i, kept) else exp.alias_(i, f"_{at}") for at, i in enumerate(node.expressions)]
    return node.select(*items, append=False)


def _plain_inner(binder: Binder, node: exp.Select, outer: Scope, test: Test, ctes: Ctes) -> Inner:
    """A subquery without aggregates: its WHERE and SELECT list may name columns of the query around."""
    refuse_unread_clauses(node)
    with _explained(node, outer):
        root, own = binder.sources(node, ctes)
    scope = own.inside(outer)
    links: tuple[Predicate, ...] = ()
    where = node.args.get("where")
    if where is not None:
        root, links = _restricted(binder, root, scope, where.this, ctes)
    if test.values:
        return Inner(root, tuple(e for _, e in binder.outputs(node, scope)), links)
    for item in node.expressions:  # EXISTS does not look at them, but they must mean something
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            own.all(item.table if isinstance(item, exp.Column) else None, text_of(item))
            continue
        refuse_subqueries(item)
        compile_expression(item.this if isinstance(item, exp.Alias) else item, scope)
    return Inner(root, (), links)


def _is_plain(node: exp.Select) -> bool:
    if is_grouped(node) or set(_given(node)) & {"qualify", "limit", "offset"}:
        return False
    return not any(item.find(exp.Window) for item in node.expressions)


def _given(node: exp.Expr) -> list[str]:
    return [name.rstrip("_") for name, value in node.args.items() if value not in (None, False, [])]


@contextmanager
def _explained(node: exp.Expr, outer: Scope) -> Iterator[None]:
    """Say of a column that is missing here, but belongs to the query around, why it cannot be named."""
    try:
        yield
    except UnknownName as failure:
        for column in node.find_all(exp.Column):
            text = column.sql(dialect="spark")
            if failure.fact == f"there is no column `{text}`" and outer.knows(column):
                raise correlation_not_offered(text, text_of(node)) from failure
        raise

"""Scalar SQL expressions, compiled to trees that mean what Spark means.

Only functions of the registry and a few leaves are accepted; anything else is refused with `Unsupported`. Each is
proven equal to Spark by `tests/spark/test_expression_conformance.py`, for values, types, names and failures. Types
follow Spark's rules, bottom-up, and not DuckDB's inference.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.logical import Window
from rejoinder.sql.functions import output_names
from rejoinder.sql.functions.function_registry import BY_CLASS, BY_NAME
from rejoinder.sql.functions.nested import nested_functions
from rejoinder.sql.functions.refusals import unsupported
from rejoinder.sql.functions.time import windowing_functions, windows
from rejoinder.sql.functions.user_calls import compile_user_call, user_function
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import literals, spark_types
from rejoinder.sql.types.terms import Compiler, Term, refuse


class Scope(Protocol):
    """Where an expression stands: it knows which columns there are."""

    def resolve(self, column: exp.Column) -> tuple[str, pa.DataType]:
        """Give the internal name and the type of a column. Raises a `PlanningError`."""
        ...


def compile_expression(node: exp.Expr, scope: Scope) -> Expression:
    """Compile an expression over the columns of a scope. Raises a `PlanningError`; no row is touched."""
    term = _Compiler(scope).compile(node)
    if term.type in (spark_types.YEAR_MONTH, spark_types.CALENDAR):
        raise refuse(
            node,
            f"{spark_types.spark_name(term.type)} is not the type of a column",
            "add it to a time, CAST it to STRING, or use make_dt_interval",
        )
    return _expression(term, node)


def _expression(term: Term, node: exp.Expr) -> Expression:
    return Expression(term.node, text_of(node))


def compile_window(node: exp.Expr, scope: Scope) -> Window | None:
    """Compile start and end of an expression that is a window made by us; None for others."""
    term = _Compiler(scope).compile(node)
    if term.bounds is None:
        return None
    return Window(_expression(term.bounds.start, node), _expression(term.bounds.end, node), term.bounds.size)


def hop_starts(node: exp.Expr, scope: Scope) -> Expression:
    """Compile the starts of all windows of a call of HOP, as a list. Raises a `PlanningError`."""
    return _expression(windowing_functions.read_hop(_Compiler(scope), node).starts, node)


def compile_validity_time(node: exp.Expr, scope: Scope) -> Expression:
    """Compile the time of a call of VALIDITY_WINDOW. Raises a `PlanningError`."""
    return _expression(windowing_functions.read_validity(_Compiler(scope), node), node)


def compile_session(node: exp.Expr, scope: Scope) -> tuple[Expression, int]:
    """Compile the time of a call of SESSION, and read its gap. Raises a `PlanningError`."""
    time, gap = windowing_functions.read_session(_Compiler(scope), node)
    return _expression(time, node.expressions[0]), gap


def split_windows(node: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """Split the equality of two windows into those of their ends; any other condition stays as it is."""
    return windows.split_equality(_Compiler(scope), node)


def output_name(node: exp.Expr, scope: Scope | None = None) -> str:
    """Give the alias, or the name that Spark would generate. Raises `Unsupported` where that name is not certain.

    Without a scope, the name of a sum is not certain: Spark names the sum of a date otherwise.
    """
    if scope is None:
        return output_names.output_name(node)
    types: dict[int, pa.DataType] = {}

    def part_type(part: exp.Expr) -> pa.DataType | None:
        if not types:
            types.update(_types(node, scope))
        return types.get(id(part)) or type_of(part, scope)

    return output_names.output_name(node, part_type, lambda column: _is_column(column, scope))


def _types(node: exp.Expr, scope: Scope) -> dict[int, pa.DataType]:
    """The types of the parts of an expression, by the identity of their nodes."""
    compiler = _Compiler(scope, types={})
    with contextlib.suppress(errors.PlanningError):  # then it is refused with the whole
        compiler.compile(node)
    return compiler.types or {}


def _is_column(column: exp.Column, scope: Scope) -> bool:
    try:
        scope.resolve(column)
    except errors.PlanningError:
        return False
    return True


def type_of(node: exp.Expr, scope: Scope) -> pa.DataType | None:
    """The type of an expression; None for an interval, and for something that is refused with the whole."""
    try:
        return _Compiler(scope).compile(node).type
    except errors.PlanningError:
        return None


class _Compiler:
    def __init__(
        self,
        scope: Scope,
        variables: Mapping[str, Term] | None = None,
        depth: int = 0,
        types: dict[int, pa.DataType] | None = None,
    ) -> None:
        self._scope = scope
        self._variables = variables or {}
        self.depth = depth
        self.types = types
        """If given, the types of all nodes are put into it, by the identity of the nodes."""

    def compile(self, node: exp.Expr) -> Term:
        term = self._compiled(node)
        if self.types is not None:
            self.types[id(node)] = term.type
        return term

    def _compiled(self, node: exp.Expr) -> Term:
        if not isinstance(node, exp.Expr):
            raise errors.InvalidSql("an argument is missing", hint="look at the calls of functions in the query")
        if isinstance(node, exp.Identifier) and node.name.lower() in self._variables:
            return self._variables[node.name.lower()]
        leaf = _LEAVES.get(type(node))
        if leaf is not None:
            return leaf(self, node)
        declared = user_function(node)
        if declared is not None:
            return compile_user_call(self, node, declared)
        function = BY_NAME.get(node.name.lower()) if isinstance(node, exp.Anonymous) else BY_CLASS.get(type(node))
        if function is None:
            raise unsupported(node)
        return function.compile(self, node)

    def resolve(self, column: exp.Column) -> Term:
        name, kind = self._scope.resolve(column)
        return windows.with_column_bounds(Term(nodes.Column(name, kind)), self._scope)

    def with_variables(self, terms: Mapping[str, Term]) -> Compiler:
        return _Compiler(self._scope, {**self._variables, **terms}, self.depth + 1, self.types)

    def repeated(self, starts: nodes.Node) -> str | None:
        return self._scope.repeated(starts) if isinstance(self._scope, windows.WindowScope) else None


def _compile_column(compiler: Compiler, node: exp.Expr) -> Term:
    """Find a column; if there is none, `a.b` may be the field `b` of a column `a`."""
    assert isinstance(node, exp.Column)
    try:
        return compiler.resolve(node)
    except (errors.UnknownName, errors.InvalidSql):
        parts = node.parts
        for length in (2, 1):
            if length >= len(parts):
                continue
            try:
                term = compiler.resolve(
                    exp.column(parts[length - 1].name, table=parts[0].name if length == 2 else None)
                )
            except errors.AmbiguousName:
                raise
            except errors.PlanningError:
                continue
            for part in parts[length:]:
                term = nested_functions.field_of(term, part.name, node)
            return term
        raise


_LEAVES: dict[type[exp.Expr], Callable[[Compiler, exp.Expr], Term]] = {
    exp.Column: _compile_column,
    exp.Paren: literals.compile_paren,
    exp.Literal: literals.compile_literal,
    exp.RawString: literals.compile_raw_string,
    exp.Boolean: literals.compile_boolean,
    exp.Null: literals.compile_null,
}

"""Scalar SQL expressions, compiled to trees that mean what Spark means.

A whitelist: each node class and function is proven equal to Spark by `tests/spark/test_expression_conformance.py`, for
values, types, names and failures. Types follow Spark's rules, bottom-up; DuckDB's inference is not relied upon.
Anything else is refused with `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir import nodes
from rejoinder.ir.expression import Expression
from rejoinder.ir.logical import Window
from rejoinder.sql.functions import (
    arithmetic,
    logic,
    math_functions,
    nested_functions,
    output_names,
    patterns,
    text_functions,
)
from rejoinder.sql.functions.refusals import not_offered
from rejoinder.sql.functions.time import time_functions, window_functions
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import casts, literals, spark_types
from rejoinder.sql.types.terms import Compiler, Term

NodeCompiler = Callable[[Compiler, exp.Expr], Term]


class Scope(Protocol):
    """Where an expression stands: it knows which columns there are."""

    def resolve(self, column: exp.Column) -> tuple[str, pa.DataType]:
        """Give the internal name and the type of a column. Raises a `PlanningError`."""
        ...


def compile_expression(node: exp.Expr, scope: Scope) -> Expression:
    """Compile an expression over the columns of a scope. Raises a `PlanningError`; no row is touched."""
    return _expression(_Compiler(scope).compile(node), node)


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
    return _expression(window_functions.read_hop(_Compiler(scope), node).starts, node)


def compile_validity_time(node: exp.Expr, scope: Scope) -> Expression:
    """Compile the time of a call of VALIDITY_WINDOW. Raises a `PlanningError`."""
    return _expression(window_functions.read_validity(_Compiler(scope), node), node)


def compile_session(node: exp.Expr, scope: Scope) -> tuple[Expression, int]:
    """Compile the time of a call of SESSION, and read its gap. Raises a `PlanningError`."""
    time, gap = window_functions.read_session(_Compiler(scope), node)
    return _expression(time, node.expressions[0]), gap


def split_windows(node: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """Split the equality of two windows into those of their ends; any other condition stays as it is."""
    return window_functions.split_equality(_Compiler(scope), node)


def output_name(node: exp.Expr, scope: Scope | None = None) -> str:
    """Give the alias, or the name that Spark would generate. Raises `Unsupported` where that name is not certain.

    Without a scope, the name of a sum is not certain: Spark names the sum of a date otherwise.
    """
    return output_names.output_name(node, None if scope is None else lambda part: _is_time(part, scope))


def _is_time(node: exp.Expr, scope: Scope) -> bool:
    try:
        return spark_types.is_datetime(_Compiler(scope).compile(node).type)
    except errors.PlanningError:
        # An interval, or something that is refused with the whole.
        return isinstance(node, exp.Interval)


class _Compiler:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def compile(self, node: exp.Expr) -> Term:
        if not isinstance(node, exp.Expr):
            raise errors.InvalidSql("an argument is missing", hint="look at the calls of functions in the query")
        compiler = _NODES.get(type(node))
        if compiler is None:
            raise not_offered(node)
        return compiler(self, node)

    def resolve(self, column: exp.Column) -> Term:
        name, kind = self._scope.resolve(column)
        return window_functions.with_column_bounds(Term(nodes.Column(name, kind)), self._scope)

    def repeated(self, starts: nodes.Node) -> str | None:
        return self._scope.repeated(starts) if isinstance(self._scope, window_functions.WindowScope) else None


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


def _compile_named(compiler: Compiler, node: exp.Expr) -> Term:
    compile_function = _NAMED.get(node.name.lower())
    if compile_function is None:
        raise not_offered(node)
    return compile_function(compiler, node)


_NAMED: dict[str, NodeCompiler] = {**math_functions.NAMED, **time_functions.NAMED, **window_functions.NAMED}

_NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.Column: _compile_column,
    exp.Paren: literals.compile_paren,
    exp.Literal: literals.compile_literal,
    exp.RawString: literals.compile_raw_string,
    exp.Boolean: literals.compile_boolean,
    exp.Null: literals.compile_null,
    exp.Cast: casts.compile_cast,
    exp.TryCast: casts.compile_cast,
    exp.Neg: arithmetic.compile_negation,
    exp.Add: arithmetic.compile_addition,
    exp.Sub: arithmetic.compile_subtraction,
    exp.Mul: arithmetic.compile_multiplication,
    exp.Div: arithmetic.compile_division,
    exp.Mod: arithmetic.compile_modulo,
    exp.IntDiv: arithmetic.compile_integer_division,
    exp.EQ: logic.compile_comparison,
    exp.NEQ: logic.compile_comparison,
    exp.LT: logic.compile_comparison,
    exp.LTE: logic.compile_comparison,
    exp.GT: logic.compile_comparison,
    exp.GTE: logic.compile_comparison,
    exp.NullSafeEQ: logic.compile_null_safe_equality,
    exp.NullSafeNEQ: logic.compile_null_safe_inequality,
    exp.Is: logic.compile_is,
    exp.Not: logic.compile_not,
    exp.And: logic.compile_and,
    exp.Or: logic.compile_or,
    exp.Case: logic.compile_case,
    exp.If: logic.compile_if,
    exp.Coalesce: logic.compile_coalesce,
    exp.Between: logic.compile_between,
    exp.In: logic.compile_in,
    **text_functions.NODES,
    **math_functions.NODES,
    **time_functions.NODES,
    **nested_functions.NODES,
    **patterns.NODES,
    exp.Anonymous: _compile_named,
}

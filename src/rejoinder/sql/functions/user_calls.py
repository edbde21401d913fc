"""Calls of functions that the user declared: which calls these are, and how they are compiled.

A syntax tree does not know the catalog. So the binder marks the calls of declared functions right after parsing
(`mark_calls`), and the mark travels with the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.scalar_operation import ScalarOperation
from rejoinder.ir.user_functions import FunctionKind, UserFunction
from rejoinder.kernels.duckdb.functions.user_calls import USER_FUNCTION
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Compiler, Term, mismatch, refuse

_MARK = "user function"
_OTHERS = "user functions"
"""In the meta of a call of another function: all that are declared."""


def mark_calls(query: exp.Expr, functions: Sequence[UserFunction]) -> None:
    """Mark the calls of declared functions in a tree that was just parsed, and put named arguments into order."""
    by_name = {function.name.lower(): function for function in functions}
    if by_name:
        for node in query.find_all(exp.Anonymous):
            function = by_name.get(node.name.lower())
            node.meta[_OTHERS if function is None else _MARK] = functions if function is None else function
            if function is not None and any(isinstance(argument, exp.Kwarg) for argument in node.expressions):
                node.set("expressions", _in_order(node, function))


def user_function(node: exp.Expr | None, *kinds: FunctionKind) -> UserFunction | None:
    """Return the declared function that a node calls, if it is of one of these kinds."""
    function = node.meta.get(_MARK) if isinstance(node, exp.Anonymous) else None
    return function if isinstance(function, UserFunction) and (not kinds or function.kind in kinds) else None


def meant_declared(node: exp.Expr) -> str:
    """A hint with the declared functions whose names are close to that of a call; empty if none is."""
    return errors.near_misses(node.name, [function.name for function in node.meta.get(_OTHERS, ())])


def compile_user_call(compiler: Compiler, node: exp.Expr, function: UserFunction) -> Term:
    """Compile a call of a scalar function. Raises a `PlanningError`."""
    if function.kind == "table":
        hint = f"write it in FROM: … , LATERAL {function.name}(…) AS t, or LATERAL VIEW {function.name}(…) t AS …"
        raise refuse(node, f"`{function.name}` returns a table, not a value", hint)
    if function.kind == "aggregate":
        hint = "aggregates stand in SELECT and HAVING, beside a GROUP BY; elsewhere, compute them in a subquery"
        raise refuse(node, f"the aggregate `{function.name}` is not supported here", hint)
    return called(function, arguments_of(compiler.compile, node, function), function.result)


def arguments_of(compiled: Callable[[exp.Expr], Term], node: exp.Expr, function: UserFunction) -> list[Term]:
    """Compile the arguments of a call, as the types that the function declares. Raises `TypeMismatch`."""
    given, declared = list(node.expressions), list(function.arguments)
    if len(given) != len(declared):
        wanted = f"{len(declared)} argument{'' if len(declared) == 1 else 's'}"
        raise mismatch(
            node, f"`{function.name}` takes {wanted}, not {len(given)}", f"it is declared as {function.signature}"
        )
    return [
        declared_type(compiled(argument), field, node, function)
        for argument, field in zip(given, declared, strict=True)
    ]


def _in_order(node: exp.Expr, function: UserFunction) -> list[exp.Expr]:
    """Return the arguments of a call in the declared order: those without a name first, then `name => value`."""
    given = list(node.expressions)
    named = [argument for argument in given if isinstance(argument, exp.Kwarg)]
    if not named:
        return given
    positional = given[: len(given) - len(named)]
    names = [field.name for field in function.arguments]
    values = dict(zip(names, positional, strict=False))
    for argument in named:
        name = next((known for known in names if known.lower() == argument.this.name.lower()), None)
        if name is None:
            hint = errors.near_misses(argument.this.name, names) or f"it is declared as {function.signature}"
            raise mismatch(node, f"`{function.name}` has no argument `{argument.this.name}`", hint)
        if name in values or any(isinstance(other, exp.Kwarg) for other in positional):
            hint = "write arguments without a name first, and each argument once"
            raise mismatch(node, f"argument `{name}` of `{function.name}` is not clear", hint)
        values[name] = argument.expression
    return [values[name] for name in names if name in values]


def declared_type(term: Term, field: pa.Field, node: exp.Expr, function: UserFunction) -> Term:
    """Cast an argument to its declared type, if that loses nothing. Raises `TypeMismatch`."""
    is_literal = term.literal and term.type == spark_types.STRING and spark_types.is_datetime(field.type)
    if not is_literal and term.type != field.type and not _is_wider(field.type, term.type):
        given, wanted = spark_types.spark_name(term.type), spark_types.spark_name(field.type)
        raise mismatch(
            node,
            f"argument `{field.name}` of `{function.name}` is {wanted}, not {given}",
            f"CAST it to {wanted.upper()}; the function is declared as {function.signature}",
        )
    return coerce(term, field.type, node)


def called(function: UserFunction, terms: Sequence[Term], kind: pa.DataType) -> Term:
    """Make the term that calls a function with arguments of its types."""
    operation = ScalarOperation(USER_FUNCTION, evaluation="all", can_fail=True, user=function)
    return Term(nodes.Call(operation, [term.node for term in terms], kind))


def _is_wider(wider: pa.DataType, kind: pa.DataType) -> bool:
    if spark_types.STRING in (wider, kind) and not pa.types.is_null(kind):
        return False  # Spark would read the text as a number, row by row
    try:
        return bool(spark_types.common_type(wider, kind) == wider)
    except errors.TypeMismatch:
        return False

"""Bind aggregate functions: rewrite each call to the primitives of the plan, with Spark's result type.

The plan has four primitives, `count`, `sum`, `min` and `max`. All of them ignore NULL.

    AVG(x)                        →  SUM(x) / COUNT(x)
    SUM(x) FILTER (WHERE c)       →  SUM(CASE WHEN c THEN x END)
    COUNT(a, b)                   →  COUNT(CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN TRUE END)
    COUNT_IF(c)                   →  COUNT(CASE WHEN c THEN TRUE END)
    ANY_VALUE(x), BOOL_AND(x)     →  MIN(x)      -- the minimum, so that ANY_VALUE is deterministic
    BOOL_OR(x)                    →  MAX(x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql
from rejoinder.ir import operators
from rejoinder.ir.expression import Expression, column
from rejoinder.ir.logical import Call, Function
from rejoinder.ir.nodes import And, Literal
from rejoinder.sql.bind.predicates import coerced
from rejoinder.sql.bind.windows.window_syntax import operands
from rejoinder.sql.functions.arithmetic import average
from rejoinder.sql.functions.expression_compiler import Scope, compile_expression
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.parse.foreign_names import foreign_function
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term, build, mismatch, refuse

SUPPORTED = "COUNT, COUNT_IF, SUM, AVG, MIN, MAX, ANY_VALUE, BOOL_AND and BOOL_OR are"
_NODES: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.AnyValue: "any_value",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
}
_SYNONYMS = {"mean": "avg", "every": "bool_and", "some": "bool_or"}
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True)
class AggregateCall:
    """A call of an aggregate function, as written."""

    node: exp.Expr
    function: str
    arguments: tuple[exp.Expr, ...]
    is_distinct: bool
    condition: exp.Expr | None


@dataclass(frozen=True)
class Primitive:
    """An aggregate of the plan."""

    call: Call
    distinct: tuple[Expression, ...] = ()
    """If not empty, the call is over the distinct values of these expressions."""


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is a call of an aggregate function, supported or not."""
    if isinstance(node, _WRAPPERS):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _SYNONYMS
    return isinstance(node, exp.AggFunc)


def aggregates_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the outermost aggregate calls of an expression, without those in subqueries.

    A window function is not one, but its arguments can contain some.
    """

    def is_foreign(inner: exp.Expr) -> bool:
        return isinstance(inner, exp.Query | exp.Window) or is_aggregate(inner)

    for part in node.walk(prune=is_foreign):
        if isinstance(part, exp.Window):
            for operand in operands(part):
                yield from aggregates_in(operand)
        elif is_aggregate(part):
            yield part


def read_call(node: exp.Expr) -> AggregateCall:
    """Read a call. Raises `Unsupported` for a function or form that is not supported."""
    inner, condition = node, None
    while isinstance(inner, _WRAPPERS):
        if isinstance(inner, exp.Filter):
            condition = inner.expression.this
        elif not isinstance(inner.this, exp.AnyValue):
            raise refuse(node, "IGNORE NULLS is not supported here", "remove it: aggregates ignore NULL")
        inner = inner.this
    name = inner.name.lower() if isinstance(inner, exp.Anonymous) else ""
    function = _NODES.get(type(inner)) or _SYNONYMS.get(name)
    if function is None:
        called = text_of(inner).split("(", 1)[0].lower()
        raise refuse(node, f"the aggregate `{called}` is not supported", foreign_function(called) or SUPPORTED)
    listed = inner.expressions if isinstance(inner, exp.Anonymous) else [inner.this, *inner.expressions]
    arguments = [part for part in listed if part is not None]
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
    for part in (*arguments, *([] if condition is None else [condition])):
        for nested in aggregates_in(part):
            raise InvalidSql(
                f"`{text_of(nested)}` is an aggregate inside an aggregate",
                detail=f"in `{text_of(node)}`",
                hint="compute the inner one in a subquery: FROM (SELECT … GROUP BY …)",
            )
    is_star = any(part.is_star for part in arguments)
    if is_star and (function != "count" or distinct or not isinstance(arguments[0], exp.Star) or len(arguments) > 1):
        raise refuse(node, f"`{text_of(node)}` is not supported", "name the columns, or write COUNT(*)")
    if len(arguments) != 1 and (function != "count" or not arguments):
        hint = f"write {function.upper()}({'*' if function == 'count' else 'x'})"
        raise InvalidSql(f"`{function}` takes one argument, not {len(arguments)}", detail=text_of(node), hint=hint)
    return AggregateCall(node, function, tuple(arguments), distinct, condition)


def bind_call(call: AggregateCall, scope: Scope, named: Callable[[Primitive], str]) -> Expression:
    """Return the result of a call; `named` returns the column of a primitive. Raises a `PlanningError`."""
    condition = None if call.condition is None else _condition(call.condition, scope)
    if call.function == "count":
        return column(named(_count(call, scope, condition)), spark_types.BIGINT)
    (node,) = call.arguments
    if call.function == "count_if":
        met = _condition(node, scope)
        return _count_of(named, _present(met if condition is None else _both(condition, met), call.node))
    argument = compile_expression(node, scope)
    if pa.types.is_null(argument.type):
        raise mismatch(call.node, "the type of NULL is not known", "CAST it")
    if call.function in ("sum", "avg"):
        return _sum_or_average(call, argument, condition, named)
    function: Function = "max" if call.function in ("max", "bool_or") else "min"
    if call.function in ("bool_and", "bool_or") and argument.type != spark_types.BOOLEAN:
        raise mismatch(call.node, f"`{call.function}` needs a condition, not {spark_types.spark_name(argument.type)}")
    if spark_types.is_nested(argument.type):
        kind = spark_types.spark_name(argument.type)
        raise refuse(call.node, f"`{call.function}` of {kind} is not supported", "take its fields or elements")
    argument = _where(condition, argument)
    return column(named(Primitive(Call(function, argument, argument.type))), argument.type)


def _count(call: AggregateCall, scope: Scope, condition: Expression | None) -> Primitive:
    arguments = [compile_expression(node, scope) for node in call.arguments if not node.is_star]
    if call.is_distinct:
        for node, argument in zip(call.arguments, arguments, strict=True):
            if not spark_types.comparable(argument.type, argument.type):
                raise mismatch(call.node, f"`{text_of(node)}` is a map, and maps cannot be compared")
        counted = tuple(_where(condition, argument) for argument in arguments)
        present = counted[0] if len(counted) == 1 and _is_plain(counted[0].type) else _all_present(counted)
        return Primitive(Call("count", present, spark_types.BIGINT), counted)
    nullable = [argument for argument in arguments if argument.node.nullable or argument.can_fail]
    if not nullable and condition is None:
        return Primitive(Call("count", None, spark_types.BIGINT))
    if len(nullable) == 1 and condition is None and _is_plain(nullable[0].type):
        return Primitive(Call("count", nullable[0], spark_types.BIGINT))
    conditions = ([] if condition is None else [condition]) + ([_all_present(nullable)] if nullable else [])
    both = conditions[0] if len(conditions) == 1 else _both(*conditions)
    return Primitive(Call("count", _present(both, call.node), spark_types.BIGINT))


def _is_plain(kind: pa.DataType) -> bool:
    return not spark_types.is_nested(kind) and not pa.types.is_null(kind)


def _count_of(named: Callable[[Primitive], str], argument: Expression) -> Expression:
    return column(named(Primitive(Call("count", argument, spark_types.BIGINT))), spark_types.BIGINT)


def _sum_or_average(
    call: AggregateCall, argument: Expression, condition: Expression | None, named: Callable[[Primitive], str]
) -> Expression:
    kind = argument.type
    if not spark_types.is_numeric(kind):
        raise mismatch(
            call.node, f"`{call.function}` needs a number, not {spark_types.spark_name(kind)}", "CAST it to a number"
        )
    if call.function == "avg" and kind == spark_types.BIGINT:
        # As Spark does: no sum is too large for a DOUBLE.
        argument = coerced(argument, spark_types.DOUBLE, call.node)
    argument = _where(condition, argument)
    total = sum_type(argument.type)
    distinct = (argument,) if call.is_distinct else ()
    sums = column(named(Primitive(Call("sum", argument, total), distinct)), total)
    if call.function == "sum":
        return sums
    counts = column(named(Primitive(Call("count", argument, spark_types.BIGINT), distinct)), spark_types.BIGINT)
    if spark_types.is_decimal(kind):
        result = spark_types.bounded_decimal(kind.precision + 4, kind.scale + 4)
        quotient = average(Term(sums.node), Term(counts.node), result)
    else:
        template = "(CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE))"
        quotient = build(template, spark_types.DOUBLE, Term(sums.node), Term(counts.node))
    return Expression(quotient.node, text_of(call.node))


def sum_type(kind: pa.DataType) -> pa.DataType:
    """Return Spark's type of a sum.

    >>> sum_type(pa.int32()), sum_type(pa.decimal128(10, 2))
    (DataType(int64), Decimal128Type(decimal128(20, 2)))
    """
    if spark_types.is_integer(kind):
        return spark_types.BIGINT
    return (
        spark_types.bounded_decimal(kind.precision + 10, kind.scale)
        if spark_types.is_decimal(kind)
        else spark_types.DOUBLE
    )


def _condition(node: exp.Expr, scope: Scope) -> Expression:
    condition = compile_expression(node, scope)
    if condition.type != spark_types.BOOLEAN:
        raise mismatch(node, f"a condition must be boolean, not {spark_types.spark_name(condition.type)}", "compare it")
    return condition


def _where(condition: Expression | None, argument: Expression) -> Expression:
    """Return `CASE WHEN condition THEN argument END`."""
    if condition is None:
        return argument
    return Expression(operators.when(condition.node, argument.node), argument.text)


def _both(left: Expression, right: Expression) -> Expression:
    return Expression(operators.when(left.node, right.node), right.text)


def _all_present(arguments: list[Expression] | tuple[Expression, ...]) -> Expression:
    text = ", ".join(argument.text for argument in arguments)
    return _present(Expression(And(operators.is_not_null(argument.node) for argument in arguments), text), None)


def _present(condition: Expression, node: exp.Expr | None) -> Expression:
    """Return `CASE WHEN condition THEN TRUE END`, the argument of a COUNT."""
    text = condition.text if node is None else text_of(node)
    return Expression(operators.when(condition.node, Literal(True, spark_types.BOOLEAN)), text)

"""Calls of aggregate functions: how they are written, and how they are bound (`functions.aggregates`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from rejoinder.errors import InvalidSql
from rejoinder.ir.expressions.expression import Expression
from rejoinder.sql.bind.windows.window_syntax import operands
from rejoinder.sql.functions.aggregates.aggregate_function import AggregateCall, AggregateFunction, Primitive, SortedBy
from rejoinder.sql.functions.aggregates.aggregate_registry import AGGREGATES, aggregate_of, argument_nodes
from rejoinder.sql.functions.expression_compiler import Scope, compile_expression
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.parse.foreign_names import foreign_function
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import mismatch, refuse

_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_ONE_VALUE = (exp.AnyValue, exp.First, exp.FirstValue, exp.Last, exp.LastValue)


@dataclass(frozen=True)
class Aggregated:
    """A call as it was written."""

    node: exp.Expr
    function: AggregateFunction
    arguments: tuple[exp.Expr, ...]
    is_distinct: bool
    condition: exp.Expr | None
    order: tuple[exp.Expr, ...] = ()


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is a call of an aggregate function, supported or not."""
    if isinstance(node, _WRAPPERS):
        return is_aggregate(node.this)
    return isinstance(node, exp.AggFunc) or (
        isinstance(node, exp.Anonymous | exp.Any) and aggregate_of(node) is not None
    )


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


def read_call(node: exp.Expr) -> Aggregated:
    """Take a call apart. Raises `Unsupported` for a function or a form that is not supported."""
    inner, condition = node, None
    order: list[exp.Expr] = []
    while isinstance(inner, _WRAPPERS):
        if isinstance(inner, exp.Filter):
            condition = inner.expression.this
        elif isinstance(inner, exp.WithinGroup):
            order = list(inner.expression.expressions)
        elif not isinstance(inner.this, _ONE_VALUE):
            raise refuse(node, "IGNORE NULLS is not supported here", "remove it: aggregates ignore NULL")
        inner = inner.this
    function = aggregate_of(inner)
    if function is None:
        name = text_of(inner).split("(", 1)[0].lower()
        *names, last = [aggregate.name.upper() for aggregate in AGGREGATES]
        hint = foreign_function(name) or f"{', '.join(names)} and {last} are"
        raise refuse(node, f"the aggregate `{name}` is not supported", hint)
    values = argument_nodes(inner)
    if values and isinstance(values[-1], exp.Order):  # f(x ORDER BY y)
        order, values = list(values[-1].expressions), [*values[:-1], values[-1].this]
    if order and not function.takes_order:
        raise refuse(node, f"`{function.name}` takes no ORDER BY", f"write {function.signature}")
    is_distinct = bool(values) and isinstance(values[0], exp.Distinct)
    if is_distinct:
        values = [*values[0].expressions, *values[1:]]
    for part in (*values, *(each.this for each in order), *([] if condition is None else [condition])):
        for nested in aggregates_in(part):
            raise InvalidSql(
                f"`{text_of(nested)}` is an aggregate inside an aggregate",
                detail=f"in `{text_of(node)}`",
                hint="compute the inner one in a subquery: FROM (SELECT … GROUP BY …)",
            )
    is_star = any(part.is_star for part in values)
    if is_star and (function.arguments or is_distinct or not isinstance(values[0], exp.Star) or len(values) > 1):
        raise refuse(node, f"`{text_of(node)}` is not supported", "name the columns, or write COUNT(*)")
    if len(values) not in function.counts and (function.arguments is not None or not values):
        counts = " or ".join(map(str, function.counts))
        wanted = "one argument" if function.arguments in (None, 1) else f"{counts} arguments"
        hint = "write COUNT(*)" if function.arguments is None else f"write {function.signature}"
        raise InvalidSql(f"`{function.name}` takes {wanted}, not {len(values)}", detail=text_of(node), hint=hint)
    return Aggregated(node, function, tuple(values), is_distinct, condition, tuple(order))


def bind_call(call: Aggregated, scope: Scope, named: Callable[[Primitive], str]) -> Expression:
    """The result of a call, over the columns that `named` gives its primitives. Raises a `PlanningError`."""
    condition = None if call.condition is None else _condition(call.condition, scope)
    arguments = tuple(compile_expression(node, scope) for node in call.arguments if not node.is_star)
    name = call.function.name
    order = tuple(
        SortedBy(compile_expression(each.this, scope), bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
        for each in call.order
    )
    return call.function.bind(AggregateCall(call.node, name, arguments, call.is_distinct, condition, named, order))


def _condition(node: exp.Expr, scope: Scope) -> Expression:
    condition = compile_expression(node, scope)
    if condition.type != spark_types.BOOLEAN:
        kind = spark_types.spark_name(condition.type)
        raise mismatch(node, f"a condition must be boolean, not {kind}", "compare it")
    return condition

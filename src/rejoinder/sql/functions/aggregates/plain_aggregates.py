"""Counts, sums, means, extremes, conditions and bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.aggregate_calls import Call, Function
from rejoinder.ir.expressions import operators
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.nodes import And, Literal
from rejoinder.sql.functions.aggregates.aggregate_function import (
    AggregateCall,
    AggregateFunction,
    Primitive,
    require_condition,
    require_numbers,
)
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast, coerce
from rejoinder.sql.types.terms import Term, call, mismatch, refuse

_NARROW = 28
"""Digits of a DECIMAL whose sum has ten digits more, so that it cannot overflow."""


def sum_type(kind: pa.DataType) -> pa.DataType:
    """Spark's type of a sum.

    >>> sum_type(pa.int32()), sum_type(pa.decimal128(10, 2))
    (DataType(int64), Decimal128Type(decimal128(20, 2)))
    """
    if spark_types.is_integer(kind):
        return spark_types.BIGINT
    is_decimal = spark_types.is_decimal(kind)
    return spark_types.bounded_decimal(kind.precision + 10, kind.scale) if is_decimal else spark_types.DOUBLE


def _count(aggregate: AggregateCall) -> Expression:
    arguments = aggregate.arguments
    if aggregate.is_distinct:
        for argument in arguments:
            if not spark_types.comparable(argument.type, argument.type):
                raise mismatch(aggregate.node, f"`{argument.text}` is a map, and maps cannot be compared")
        counted = tuple(map(aggregate.filtered, arguments))
        present = counted[0] if len(counted) == 1 and _is_plain(counted[0].type) else _all_present(counted)
        return aggregate.value(Primitive(Call("count", present, spark_types.BIGINT), counted, _all_present))
    nullable = [argument for argument in arguments if argument.node.nullable or argument.can_fail]
    if not nullable and aggregate.condition is None:
        return aggregate.value(Primitive(Call("count", None, spark_types.BIGINT)))
    if len(nullable) == 1 and aggregate.condition is None and _is_plain(nullable[0].type):
        return aggregate.value(Primitive(Call("count", nullable[0], spark_types.BIGINT)))
    conditions = [] if aggregate.condition is None else [aggregate.condition]
    return _count_where(aggregate, [*conditions, _all_present(nullable)] if nullable else conditions)


def count_distinct(aggregate: AggregateCall) -> Expression:
    """Count the different values exactly, which is a legal answer for any accuracy."""
    return _count(replace(aggregate, arguments=aggregate.arguments[:1], is_distinct=True))


def _regression_count(aggregate: AggregateCall) -> Expression:
    """Count the pairs of numbers."""
    require_numbers(aggregate)
    return _count(aggregate)


def _count_if(aggregate: AggregateCall) -> Expression:
    require_condition(aggregate)
    conditions = [] if aggregate.condition is None else [aggregate.condition]
    return _count_where(aggregate, [*conditions, *aggregate.arguments])


def _count_where(aggregate: AggregateCall, conditions: Sequence[Expression]) -> Expression:
    """Count the rows on which all conditions are TRUE; a later one is evaluated only where earlier ones are."""
    *outer, inner = conditions
    node = inner.node
    for condition in reversed(outer):
        node = operators.when(condition.node, node)
    present = _present(Expression(node, text_of(aggregate.node)))
    return aggregate.value(Primitive(Call("count", present, spark_types.BIGINT)))


def _sum(aggregate: AggregateCall) -> Expression:
    (argument,) = require_numbers(aggregate)
    return aggregate.primitive("sum", argument, sum_type(argument.type))


def average(aggregate: AggregateCall) -> Expression:
    """The mean: a DECIMAL of a DECIMAL, else a DOUBLE."""
    (argument,) = require_numbers(aggregate)
    kind = argument.type
    if kind == spark_types.BIGINT:  # as Spark does: no sum is too large for a DOUBLE
        argument = Expression(coerce(Term(argument.node), spark_types.DOUBLE, aggregate.node).node, argument.text)
    total = aggregate.primitive("sum", argument, sum_type(argument.type))
    count = aggregate.primitive("count", argument, spark_types.BIGINT)
    is_decimal = spark_types.is_decimal(kind)
    result = spark_types.bounded_decimal(kind.precision + 4, kind.scale + 4) if is_decimal else spark_types.DOUBLE
    quotient = call("average", result, Term(total.node), Term(count.node), can_fail=is_decimal)
    return Expression(quotient.node, text_of(aggregate.node))


def _try_sum(aggregate: AggregateCall) -> Expression:
    """The sum, NULL where it does not fit its type."""
    (argument,) = _narrow(aggregate)
    if argument.type != spark_types.BIGINT:
        return _sum(aggregate)
    wide = pa.decimal128(20, 0)
    number = coerce(Term(argument.node), wide, aggregate.node)
    total = aggregate.primitive("sum", Expression(number.node, argument.text), sum_type(wide))
    return Expression(
        cast(Term(total.node), spark_types.BIGINT, aggregate.node, is_try=True).node, text_of(aggregate.node)
    )


def _try_average(aggregate: AggregateCall) -> Expression:
    """The mean, which always fits its type."""
    _narrow(aggregate)
    return average(aggregate)


def _narrow(aggregate: AggregateCall) -> tuple[Expression, ...]:
    """The arguments, if no sum of them overflows a DECIMAL."""
    arguments = require_numbers(aggregate)
    kind = arguments[0].type
    if spark_types.is_decimal(kind) and kind.precision > _NARROW:
        name = spark_types.spark_name(kind)
        why = f"`{aggregate.name}` of {name} is not supported"
        raise refuse(aggregate.node, why, f"CAST it to a DECIMAL of at most {_NARROW} digits")
    return arguments


def _bits(function: Function) -> Callable[[AggregateCall], Expression]:
    def bind(aggregate: AggregateCall) -> Expression:
        (argument,) = aggregate.arguments
        if not spark_types.is_integer(argument.type):
            kind = spark_types.spark_name(argument.type)
            raise mismatch(aggregate.node, f"`{aggregate.name}` needs an integer, not {kind}", "CAST it to BIGINT")
        return aggregate.primitive(function, argument, argument.type)

    return bind


def _extreme(function: Function) -> Callable[[AggregateCall], Expression]:
    def bind(aggregate: AggregateCall) -> Expression:
        (argument,) = aggregate.arguments
        if pa.types.is_null(argument.type):
            raise mismatch(aggregate.node, "the type of NULL is not known", "CAST it")
        if spark_types.is_nested(argument.type):
            kind = spark_types.spark_name(argument.type)
            raise refuse(
                aggregate.node, f"`{aggregate.name}` of {kind} is not supported", "take its fields or elements"
            )
        argument = aggregate.filtered(argument)  # DISTINCT changes nothing
        return aggregate.value(Primitive(Call(function, argument, argument.type)))

    return bind


def _truth(function: Function) -> Callable[[AggregateCall], Expression]:
    def bind(aggregate: AggregateCall) -> Expression:
        require_condition(aggregate)
        return _extreme(function)(aggregate)

    return bind


def _is_plain(kind: pa.DataType) -> bool:
    return not spark_types.is_nested(kind) and not pa.types.is_null(kind)


def _all_present(arguments: Sequence[Expression]) -> Expression:
    text = ", ".join(argument.text for argument in arguments)
    return _present(Expression(And([operators.is_not_null(argument.node) for argument in arguments]), text))


def _present(condition: Expression) -> Expression:
    """TRUE where a condition holds, else NULL: what COUNT counts."""
    return Expression(operators.when(condition.node, Literal(True, spark_types.BOOLEAN)), condition.text)


_SMALLEST = "The smallest value that is not NULL: rows of a group have no order of their own."
_LARGEST = "The largest value: rows of a group have no order of their own."

AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction(
        "any_value(x)", "The smallest value that is not NULL.", "any_value(x) = 1", _extreme("min"), parsed=exp.AnyValue
    ),
    AggregateFunction("avg(x)", "The mean.", "avg(x) = 1.5", average, parsed=exp.Avg, aliases=("mean",)),
    AggregateFunction("bit_and(x)", "The bits that all integers have.", "bit_and(x) = 0", _bits("bit_and")),
    AggregateFunction("bit_or(x)", "The bits that an integer has.", "bit_or(x) = 3", _bits("bit_or")),
    AggregateFunction(
        "bit_xor(x)", "The bits that an odd number of integers have.", "bit_xor(x) = 3", _bits("bit_xor")
    ),
    AggregateFunction(
        "bool_and(condition)",
        "Whether a condition is TRUE for all rows.",
        "bool_and(x > 0)",
        _truth("min"),
        parsed=exp.LogicalAnd,
        aliases=("every",),
    ),
    AggregateFunction(
        "bool_or(condition)",
        "Whether a condition is TRUE for a row.",
        "bool_or(x > 1)",
        _truth("max"),
        parsed=exp.LogicalOr,
        aliases=("any", "some"),
    ),
    AggregateFunction(
        "count(x)",
        "The number of rows on which no argument is NULL, or of all rows with `*`.",
        "(count(x) = 2) AND (count(*) = 3)",
        _count,
        parsed=exp.Count,
        arguments=None,
    ),
    AggregateFunction(
        "count_if(condition)",
        "The number of rows on which a condition is TRUE.",
        "count_if(x > 1) = 1",
        _count_if,
        parsed=exp.CountIf,
    ),
    AggregateFunction("first(x)", _SMALLEST, "first(x) = 1", _extreme("min"), parsed=exp.First),
    AggregateFunction("first_value(x)", _SMALLEST, "first_value(x) = 1", _extreme("min"), parsed=exp.FirstValue),
    AggregateFunction("last(x)", _LARGEST, "last(x) = 2", _extreme("max"), parsed=exp.Last),
    AggregateFunction("last_value(x)", _LARGEST, "last_value(x) = 2", _extreme("max"), parsed=exp.LastValue),
    AggregateFunction(
        "approx_count_distinct(x)",
        "The exact number of different values.",
        "approx_count_distinct(x) = 2",
        count_distinct,
        arguments=(1, 2),
    ),
    AggregateFunction("max(x)", "The largest value.", "max(x) = 2", _extreme("max"), parsed=exp.Max),
    AggregateFunction("min(x)", "The smallest value.", "min(x) = 1", _extreme("min"), parsed=exp.Min),
    AggregateFunction(
        "regr_count(y, x)",
        "The number of rows on which neither number is NULL.",
        "regr_count(x, 2 * x) = 2",
        _regression_count,
        parsed=exp.RegrCount,
        arguments=2,
    ),
    AggregateFunction("sum(x)", "The sum.", "sum(x) = 3", _sum, parsed=exp.Sum),
    AggregateFunction("try_avg(x)", "The mean; NULL where a sum overflows.", "try_avg(x) = 1.5", _try_average),
    AggregateFunction("try_sum(x)", "The sum; NULL where it overflows.", "try_sum(x) = 3", _try_sum),
)

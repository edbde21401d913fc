"""Aggregates of values in order: percentiles, MODE, MIN_BY and MAX_BY, lists.

The plan counts equal values of a group first, and keeps these in order (`bind.groups.counted_values`): a position among
a million values is found without a pass over them. Where Spark leaves the order open, it is that of the values here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from rejoinder.ir.aggregate_calls import Call
from rejoinder.ir.expressions import nodes, operators
from rejoinder.ir.expressions.expression import Expression
from rejoinder.sql.functions.aggregates.aggregate_function import (
    AggregateCall,
    AggregateFunction,
    CountedValues,
    Primitive,
    SortedBy,
    require_numbers,
)
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Term, call, mismatch, refuse

_FIRST = ("disc", 0.0)


def _value(aggregate: AggregateCall, values: CountedValues, function: Call) -> Expression:
    return aggregate.value(Primitive(function, counted=values))


def _known(aggregate: AggregateCall, argument: Expression) -> Expression:
    """An argument on the rows that FILTER keeps; its type must be known."""
    if pa.types.is_null(argument.type):
        raise mismatch(aggregate.node, "the type of NULL is not known", "CAST it")
    return aggregate.filtered(argument)


def _orderable(aggregate: AggregateCall, argument: Expression) -> Expression:
    if not spark_types.comparable(argument.type, argument.type):
        raise mismatch(aggregate.node, f"`{argument.text}` is a map, and maps cannot be compared")
    return _known(aggregate, argument)


# -- percentiles ------------------------------------------------------------------------------------------------------


def _percentile(aggregate: AggregateCall, values: CountedValues, argument: Expression, fraction: float) -> Expression:
    """The value that lies between its two neighbours as the fraction does."""
    kind = spark_types.DOUBLE
    low, high = (_value(aggregate, values, Call("at", argument, kind, (which, fraction))) for which in ("low", "high"))
    number = _value(aggregate, values, Call("sum", None, spark_types.BIGINT))
    parts = (Term(each.node) for each in (low, high, number))
    return Expression(call("percentile", kind, *parts, options=(repr(fraction),), evaluation="all").node)


def discrete(aggregate: AggregateCall, values: CountedValues, argument: Expression, fraction: float) -> Expression:
    """The first value up to which the fraction of all values lies."""
    return _value(aggregate, values, Call("at", argument, argument.type, ("disc", fraction)))


_Quantile = Callable[[AggregateCall, CountedValues, Expression, float], Expression]


def quantiles(
    aggregate: AggregateCall, argument: Expression, fractions: Expression, make: _Quantile, *, descending: bool = False
) -> Expression:
    """A percentile, or an array of them if an array of fractions is written."""
    numbers, is_array = _fractions(aggregate, fractions)
    values = CountedValues((SortedBy(argument, descending),), argument, is_distinct=aggregate.is_distinct)
    results = [make(aggregate, values, argument, number) for number in numbers]
    if not is_array:
        return replace(results[0], text=text_of(aggregate.node))
    array = call("array", pa.list_(results[0].type), *(Term(each.node) for each in results), evaluation="all")
    present = operators.is_not_null(results[0].node)
    return Expression(operators.when(present, array.node), text_of(aggregate.node))


def _fractions(aggregate: AggregateCall, written: Expression) -> tuple[list[float], bool]:
    node = written.node
    is_array = isinstance(node, nodes.Call) and node.operation.name == "array"
    parts = list(node.parts) if is_array else [node]
    numbers = []
    for part in parts:
        inner = part
        while isinstance(inner, nodes.Cast):
            inner = inner.parts[0]
        try:
            number = float(inner.value) if isinstance(inner, nodes.Literal) else None
        except (TypeError, ValueError):
            number = None
        if number is None or not 0 <= number <= 1:
            raise mismatch(
                aggregate.node,
                f"`{written.text}` is not a percentage",
                "write a number from 0 to 1, such as 0.5, or an ARRAY of such numbers",
            )
        numbers.append(number)
    if not numbers:
        raise mismatch(aggregate.node, "there is no percentage", "write a number from 0 to 1, such as 0.5")
    return numbers, is_array


def _double(aggregate: AggregateCall, argument: Expression) -> Expression:
    require_numbers(replace(aggregate, arguments=(argument,)))
    number = coerce(Term(argument.node), spark_types.DOUBLE, aggregate.node)
    return _known(aggregate, Expression(number.node, argument.text))


def _percentile_of(aggregate: AggregateCall) -> Expression:
    if len(aggregate.arguments) > 2:
        raise refuse(aggregate.node, "a frequency is not supported", "repeat the rows: LATERAL VIEW explode(…)")
    argument, fractions = aggregate.arguments
    return quantiles(aggregate, _double(aggregate, argument), fractions, _percentile)


def _median(aggregate: AggregateCall) -> Expression:
    (argument,) = aggregate.arguments
    half = Expression(nodes.Literal(0.5, spark_types.DOUBLE), "0.5")
    return quantiles(aggregate, _double(aggregate, argument), half, _percentile)


def _within_group(make: _Quantile) -> Callable[[AggregateCall], Expression]:
    def bind(aggregate: AggregateCall) -> Expression:
        (order,) = _order(aggregate, "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", most=1)
        argument = _double(aggregate, order.value)
        return quantiles(aggregate, argument, aggregate.arguments[0], make, descending=order.descending)

    return bind


def _approximate(aggregate: AggregateCall) -> Expression:
    """The exact percentile, which is a legal answer for any accuracy; a value of the type of the argument."""
    argument, fractions, *_ = aggregate.arguments
    kind = argument.type
    if not spark_types.is_numeric(kind) and not spark_types.is_datetime(kind):
        name = spark_types.spark_name(kind)
        raise mismatch(aggregate.node, f"`{aggregate.name}` needs a number or a time, not {name}", "CAST it")
    return quantiles(aggregate, _known(aggregate, argument), fractions, discrete)


# -- values of one row ------------------------------------------------------------------------------------------------


def _mode(aggregate: AggregateCall) -> Expression:
    descending = False
    if aggregate.order:
        (order,) = _order(aggregate, "mode() WITHIN GROUP (ORDER BY x)", most=1)
        argument, descending = order.value, order.descending
    elif aggregate.arguments:
        argument = aggregate.arguments[0]
    else:
        raise mismatch(aggregate.node, "`mode` needs a value", "write mode(x)")
    argument = _orderable(aggregate, argument)
    order_by = (SortedBy(argument, descending),)
    values = CountedValues(order_by, argument, is_distinct=aggregate.is_distinct, most_frequent_first=True)
    return _value(aggregate, values, Call("at", argument, argument.type, _FIRST))


def _by(*, largest: bool) -> Callable[[AggregateCall], Expression]:
    def bind(aggregate: AggregateCall) -> Expression:
        if len(aggregate.arguments) > 2:
            raise refuse(
                aggregate.node,
                "a number of values is not supported",
                "QUALIFY ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) <= n keeps the first rows",
            )
        value, order = aggregate.arguments
        order = _orderable(aggregate, order)
        if not spark_types.comparable(value.type, value.type):
            raise mismatch(aggregate.node, f"`{value.text}` is a map, and maps cannot be compared")
        value = _known(aggregate, value)
        value = Expression(operators.when(operators.is_not_null(order.node), value.node), value.text)
        sorted_by = (SortedBy(order, largest), SortedBy(value))
        return _value(aggregate, CountedValues(sorted_by, order), Call("at", value, value.type, _FIRST))

    return bind


# -- lists ------------------------------------------------------------------------------------------------------------


def _values_in_order(aggregate: AggregateCall, argument: Expression) -> CountedValues:
    order = tuple(
        replace(each, value=aggregate.filtered(each.value)) for each in _order(aggregate, "", most=None, least=0)
    )
    if aggregate.is_distinct and any(each.value != argument for each in order):
        raise mismatch(aggregate.node, "DISTINCT values can be ordered only by themselves", "ORDER BY the argument")
    return CountedValues((*order, SortedBy(argument)), argument, is_distinct=aggregate.is_distinct)


def collected(aggregate: AggregateCall, argument: Expression, *, distinct: bool) -> Expression:
    """The values of an argument that are not NULL as a list, in order; NULL if there is none."""
    aggregate = replace(aggregate, is_distinct=aggregate.is_distinct or distinct)
    argument = _orderable(aggregate, argument)
    return _value(aggregate, _values_in_order(aggregate, argument), Call("list", argument, pa.list_(argument.type)))


def _list(*, distinct: bool = False) -> Callable[[AggregateCall], Expression]:
    def bind(aggregate: AggregateCall) -> Expression:
        values = collected(aggregate, aggregate.arguments[0], distinct=distinct)
        none = call("array", values.type, evaluation="all", nulls="never")
        return Expression(operators.coalesce([values.node, none.node]), text_of(aggregate.node))

    return bind


def _text_list(aggregate: AggregateCall) -> Expression:
    argument, *rest = aggregate.arguments
    separator = ""
    if rest:
        if not isinstance(rest[0].node, nodes.Literal) or not isinstance(rest[0].node.value, str | None):
            raise mismatch(aggregate.node, "the separator must be a text that is written down", "listagg(x, ', ')")
        separator = rest[0].node.value or ""
    if pa.types.is_binary(argument.type):
        raise refuse(aggregate.node, f"`{aggregate.name}` of BINARY is not supported", "use hex(x), or collect_list")
    text = coerce(Term(argument.node), spark_types.STRING, aggregate.node)
    value = _known(aggregate, Expression(text.node, argument.text))
    order = aggregate.order
    if aggregate.is_distinct:
        order = tuple(replace(each, value=value) if each.value == argument else each for each in order)
        aggregate = replace(aggregate, order=order)
    kind = pa.list_(spark_types.STRING)
    values = _value(aggregate, _values_in_order(aggregate, value), Call("list", value, kind))
    between = Term(nodes.Literal(separator, spark_types.STRING))
    joined = call("listagg", spark_types.STRING, Term(values.node), between, evaluation="all")
    return Expression(joined.node, text_of(aggregate.node))


def _order(aggregate: AggregateCall, form: str, *, most: int | None, least: int = 1) -> Sequence[SortedBy]:
    if len(aggregate.order) < least or (most is not None and len(aggregate.order) > most):
        raise refuse(aggregate.node, f"`{aggregate.name}` needs WITHIN GROUP (ORDER BY …)", f"write {form}")
    for each in aggregate.order:
        _orderable(aggregate, each.value)
    return aggregate.order


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction(
        "approx_percentile(x, p, accuracy)",
        "The exact percentile, a value that occurs.",
        "approx_percentile(x, 0.5) = 1",
        _approximate,
        aliases=("percentile_approx",),
        arguments=(2, 3),
    ),
    AggregateFunction(
        "collect_list(x)",
        "An array of the values that are not NULL, ascending; `collect_list(x ORDER BY y)` in another order.",
        "collect_list(x) = array(1, 2)",
        _list(),
        aliases=("array_agg",),
        takes_order=True,
    ),
    AggregateFunction(
        "collect_set(x)",
        "An array of the different values that are not NULL, ascending.",
        "collect_set(x) = array(1, 2)",
        _list(distinct=True),
        takes_order=True,
    ),
    AggregateFunction(
        "listagg(x, separator)",
        "The values that are not NULL as one text, ascending, or as WITHIN GROUP (ORDER BY …) says.",
        "listagg(x, ', ') = '1, 2'",
        _text_list,
        aliases=("string_agg",),
        arguments=(1, 2),
        takes_order=True,
    ),
    AggregateFunction(
        "max_by(x, y)",
        "`x` of the row with the largest `y`; of several, the smallest `x`.",
        "max_by(x, -x) = 1",
        _by(largest=True),
        arguments=(2, 3),
    ),
    AggregateFunction("median(x)", "The median.", "median(x) = 1.5", _median),
    AggregateFunction(
        "min_by(x, y)",
        "`x` of the row with the smallest `y`; of several, the smallest `x`.",
        "min_by(x, -x) = 2",
        _by(largest=False),
        arguments=(2, 3),
    ),
    AggregateFunction(
        "mode(x)",
        "The most frequent value; of several, the smallest, or the largest with WITHIN GROUP (ORDER BY x DESC).",
        "mode(x) = 1",
        _mode,
        arguments=(0, 1, 2),
        takes_order=True,
    ),
    AggregateFunction(
        "percentile(x, p)",
        "The exact percentile, interpolated; `p` may be an array.",
        "percentile(x, 0.25) = 1.25",
        _percentile_of,
        arguments=(2, 3),
    ),
    AggregateFunction(
        "percentile_cont(p)",
        "The percentile WITHIN GROUP (ORDER BY x), interpolated.",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY x) = 1.5",
        _within_group(_percentile),
        takes_order=True,
    ),
    AggregateFunction(
        "percentile_disc(p)",
        "The first value WITHIN GROUP (ORDER BY x) up to which the fraction `p` lies.",
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY x) = 1",
        _within_group(discrete),
        takes_order=True,
    ),
)

"""Estimates from sketches, computed exactly: `hll_sketch_estimate(hll_sketch_agg(x))` counts different values.

A sketch alone is not a value of a view: a retraction cannot be taken out of it. So a call that makes a sketch stands
inside a call that reads it. As in Spark, sketches ignore NULL, empty texts and bytes, and NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from rejoinder.ir.expressions import nodes, operators
from rejoinder.ir.expressions.expression import Expression
from rejoinder.sql.functions.aggregates.aggregate_function import AggregateCall, AggregateFunction
from rejoinder.sql.functions.aggregates.ordered_aggregates import discrete, quantiles
from rejoinder.sql.functions.aggregates.plain_aggregates import count_distinct
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast
from rejoinder.sql.types.terms import Term, call, mismatch, refuse

_Bind = Callable[[AggregateCall], Expression]
_TEXTS = (spark_types.STRING, spark_types.BINARY)
_KINDS = {"bigint": spark_types.BIGINT, "double": spark_types.DOUBLE, "float": spark_types.FLOAT}


def _counted(argument: Expression) -> Expression:
    """An argument on the rows that a sketch counts: not empty, not NaN."""
    term = Term(argument.node)
    if argument.type in _TEXTS:
        size = call("length", spark_types.INT, term)
        condition = operators.compared(size.node, ">", nodes.Literal(0, spark_types.INT))
    elif argument.type in (spark_types.FLOAT, spark_types.DOUBLE):
        condition = call("NOT", spark_types.BOOLEAN, call("isnan", spark_types.BOOLEAN, term)).node
    else:
        return argument
    return Expression(operators.when(condition, argument.node), argument.text)


def _require(aggregate: AggregateCall, argument: Expression, *, numbers: bool = True) -> None:
    kind = argument.type
    if kind in (*_TEXTS, spark_types.INT, spark_types.BIGINT) or (numbers and spark_types.is_numeric(kind)):
        return
    name = spark_types.spark_name(kind)
    raise mismatch(aggregate.node, f"a sketch of {name} is not supported", "CAST it to BIGINT or STRING")


def _distinct(*, numbers: bool) -> _Bind:
    def bind(aggregate: AggregateCall) -> Expression:
        argument = aggregate.arguments[0]
        _require(aggregate, argument, numbers=numbers)
        return count_distinct(replace(aggregate, arguments=(_counted(argument),)))

    return bind


def _as_number(aggregate: AggregateCall, argument: Expression, kind: pa.DataType) -> Expression:
    """An argument as the type that the name of a sketch has."""
    reals = (spark_types.FLOAT, kind)
    if not (spark_types.is_integer(argument.type) if kind == spark_types.BIGINT else argument.type in reals):
        name, needed = spark_types.spark_name(argument.type), spark_types.spark_name(kind)
        raise mismatch(aggregate.node, f"a {needed} is needed, not {name}", f"CAST it to {needed.upper()}")
    return Expression(cast(Term(argument.node), kind, aggregate.node).node, argument.text)


def _number(aggregate: AggregateCall, kind: pa.DataType) -> Expression:
    return _counted(_as_number(aggregate, aggregate.arguments[0], kind))


def _size(kind: pa.DataType) -> _Bind:
    return lambda aggregate: aggregate.primitive("count", _number(aggregate, kind), spark_types.BIGINT)


def _quantile(kind: pa.DataType) -> _Bind:
    def bind(aggregate: AggregateCall) -> Expression:
        argument = aggregate.filtered(_number(aggregate, kind))
        result = quantiles(aggregate, argument, aggregate.arguments[-1], discrete)
        found = call("of_sketch", result.type, Term(result.node), evaluation="all", can_fail=True)
        return Expression(found.node, result.text)

    return bind


def _rank(kind: pa.DataType) -> _Bind:
    def bind(aggregate: AggregateCall) -> Expression:
        argument, written = _number(aggregate, kind), aggregate.arguments[-1].node
        is_array = isinstance(written, nodes.Call) and written.operation.name == "array"
        limits = written.parts if is_array else (written,)
        total = aggregate.primitive("count", argument, spark_types.BIGINT)
        ranks = []
        for limit in limits:
            bound = cast(Term(limit), kind, aggregate.node)
            if not isinstance(limit, nodes.Literal | nodes.Cast) or limit.columns:
                raise refuse(aggregate.node, f"`{aggregate.name}` takes literals only", "such as 5, or array(5, 10)")
            below = operators.when(operators.compared(argument.node, "<=", bound.node), argument.node)
            number = aggregate.primitive("count", Expression(below, argument.text), spark_types.BIGINT)
            parts = (Term(number.node), Term(total.node))
            ranks.append(call("rank_of_sketch", spark_types.DOUBLE, *parts, evaluation="all", can_fail=True))
        kinds = spark_types.array_of(spark_types.DOUBLE)
        result = call("array", kinds, *ranks, evaluation="all", nulls="never") if is_array else ranks[0]
        return Expression(result.node, text_of(aggregate.node))

    return bind


def _pairs(aggregate: AggregateCall, kind: pa.DataType) -> tuple[Expression, Expression]:
    """Key and summary of a tuple sketch, both NULL on the rows that it ignores."""
    key, summary, *_ = aggregate.arguments
    _require(aggregate, key)
    value = _as_number(aggregate, summary, kind).node
    key = _counted(key)
    of_key = operators.when(operators.is_not_null(value), key.node)
    of_value = operators.when(operators.is_not_null(key.node), value)
    return Expression(of_key, key.text), Expression(of_value, summary.text)


def _tuple_estimate(kind: pa.DataType) -> _Bind:
    def bind(aggregate: AggregateCall) -> Expression:
        key, _ = _pairs(aggregate, kind)
        number = count_distinct(replace(aggregate, arguments=(key,)))
        return Expression(cast(Term(number.node), spark_types.DOUBLE, aggregate.node).node, text_of(aggregate.node))

    return bind


def _tuple_summary(kind: pa.DataType) -> _Bind:
    def bind(aggregate: AggregateCall) -> Expression:
        modes = [e.node.value for e in aggregate.arguments[2:] if isinstance(e.node, nodes.Literal)]
        if any(isinstance(mode, str) and mode != "sum" for mode in modes):
            raise refuse(aggregate.node, "the only summary that is supported is the sum", "leave the mode out")
        _, value = _pairs(aggregate, kind)
        total = aggregate.primitive("sum", value, kind)
        zero = nodes.Literal(0 if kind == spark_types.BIGINT else 0.0, kind)
        return Expression(operators.coalesce([total.node, zero]), text_of(aggregate.node))

    return bind


def _of_kind(name: str, kind: pa.DataType) -> tuple[AggregateFunction, ...]:
    """The functions on sketches of quantiles, of one type of number."""
    x = "x" if name == "bigint" else f"CAST(x AS {name.upper()})"
    sketch, made = f"kll_sketch_agg_{name}", f"kll_sketch_agg_{name}({x})"
    return (
        AggregateFunction(
            f"kll_sketch_get_n_{name}({sketch}(x))", "The number of values.",
            f"kll_sketch_get_n_{name}({made}) = 2", _size(kind), sketch=sketch, arguments=(1, 2),
        ),
        AggregateFunction(
            f"kll_sketch_get_quantile_{name}({sketch}(x), p)", "The exact quantile, a value that occurs.",
            f"kll_sketch_get_quantile_{name}({made}, 0.5) = 1", _quantile(kind), sketch=sketch, arguments=(2, 3),
        ),
        AggregateFunction(
            f"kll_sketch_get_rank_{name}({sketch}(x), y)", "The exact fraction of values up to `y`.",
            f"kll_sketch_get_rank_{name}({made}, 1) = 0.5", _rank(kind), sketch=sketch, arguments=(2, 3),
        ),
    )  # fmt: skip


def _of_tuples(name: str, kind: pa.DataType) -> tuple[AggregateFunction, ...]:
    sketch, value = f"tuple_sketch_agg_{name}", "x" if name == "integer" else "CAST(x AS DOUBLE)"
    return (
        AggregateFunction(
            f"tuple_sketch_estimate_{name}({sketch}(key, x))", "The exact number of different keys.",
            f"tuple_sketch_estimate_{name}({sketch}(x, {value})) = 2", _tuple_estimate(kind), sketch=sketch,
            arguments=(2, 3, 4),
        ),
        AggregateFunction(
            f"tuple_sketch_summary_{name}({sketch}(key, x))", "The sum of all `x` that have a key.",
            f"tuple_sketch_summary_{name}({sketch}(x, {value})) = 3", _tuple_summary(kind), sketch=sketch,
            arguments=(2, 3, 4),
        ),
    )  # fmt: skip


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction(
        "hll_sketch_estimate(hll_sketch_agg(x))", "The exact number of different values.",
        "hll_sketch_estimate(hll_sketch_agg(x)) = 2", _distinct(numbers=False), sketch="hll_sketch_agg",
        arguments=(1, 2),
    ),
    AggregateFunction(
        "theta_sketch_estimate(theta_sketch_agg(x))", "The exact number of different values.",
        "theta_sketch_estimate(theta_sketch_agg(x)) = 2", _distinct(numbers=True), sketch="theta_sketch_agg",
        arguments=(1, 2),
    ),
    *(function for name, kind in _KINDS.items() for function in _of_kind(name, kind)),
    *_of_tuples("double", spark_types.DOUBLE),
    *_of_tuples("integer", spark_types.BIGINT),
)  # fmt: skip

"""Variance, covariance, correlation, regression, skewness and kurtosis.

They are made of moments about the mean, which the plan computes from exact sums (`kernels.sums.moments`). Arguments are
cast to DOUBLE, as in Spark. Functions of two numbers ignore rows on which one of them is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from rejoinder.ir.aggregate_calls import Call, Function
from rejoinder.ir.expressions import operators
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.nodes import And
from rejoinder.sql.functions.aggregates.aggregate_function import (
    AggregateCall,
    AggregateFunction,
    Primitive,
    require_numbers,
)
from rejoinder.sql.functions.aggregates.plain_aggregates import average
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Term, call

_PAIR = pa.struct([("x", spark_types.DOUBLE), ("y", spark_types.DOUBLE)])


def _made(aggregate: AggregateCall, name: str, *values: Expression) -> Expression:
    """A function of values of primitives."""
    terms = [Term(value.node) for value in values]
    return Expression(call(name, spark_types.DOUBLE, *terms, evaluation="all").node, text_of(aggregate.node))


def _double(aggregate: AggregateCall, argument: Expression) -> Expression:
    return Expression(coerce(Term(argument.node), spark_types.DOUBLE, aggregate.node).node, argument.text)


def _of_one(function: Function, template: str | None = None) -> Callable[[AggregateCall], Expression]:
    """A statistic of one number: a primitive, or a function of one and the number of values."""

    def bind(aggregate: AggregateCall) -> Expression:
        (argument,) = require_numbers(aggregate)
        argument = _double(aggregate, argument)
        moment = aggregate.primitive(function, argument, spark_types.DOUBLE)
        if template is None:
            return moment
        return _made(aggregate, template, moment, aggregate.primitive("count", argument, spark_types.BIGINT))

    return bind


@dataclass(frozen=True)
class _Pairs:
    """The rows of a call with two arguments on which neither is NULL, as DOUBLEs; both are NULL on all others."""

    aggregate: AggregateCall
    first: Expression
    second: Expression

    @classmethod
    def of(cls, aggregate: AggregateCall) -> _Pairs:
        values = require_numbers(aggregate)
        return cls(aggregate, *(_double(aggregate, _where_all(values, value, aggregate)) for value in values))

    def count(self) -> Expression:
        return self.value("count", self.first, spark_types.BIGINT)

    def comoment(self) -> Expression:
        return self.value("comoment", _pair((self.first, self.second)), spark_types.DOUBLE)

    def first_moment(self) -> Expression:
        """The second moment of the first number."""
        return self.value("m2", self.first, spark_types.DOUBLE)

    def second_moment(self) -> Expression:
        """The second moment of the second number."""
        return self.value("m2", self.second, spark_types.DOUBLE)

    def first_mean(self) -> Expression:
        return self._mean(self.first)

    def second_mean(self) -> Expression:
        return self._mean(self.second)

    def _mean(self, value: Expression) -> Expression:
        total = self.value("sum", value, spark_types.DOUBLE)
        return Expression(call("average", spark_types.DOUBLE, Term(total.node), Term(self.count().node)).node)

    def value(self, function: Function, argument: Expression, kind: pa.DataType) -> Expression:
        """The value of a primitive; with DISTINCT, of the different pairs."""
        distinct = (self.first, self.second) if self.aggregate.is_distinct else ()
        return self.aggregate.value(Primitive(Call(function, argument, kind), distinct, _pair))


def _where_all(values: Sequence[Expression], value: Expression, aggregate: AggregateCall) -> Expression:
    """A value on rows that FILTER keeps and on which no value is NULL."""
    present = And([operators.is_not_null(each.node) for each in values])
    return aggregate.filtered(Expression(operators.when(present, value.node), value.text))


def _pair(values: Sequence[Expression]) -> Expression:
    struct = call("struct", _PAIR, *(Term(value.node) for value in values), evaluation="all", nulls="never")
    present = operators.is_not_null(values[0].node)
    return Expression(operators.when(present, struct.node), ", ".join(value.text for value in values))


def _mean(position: int) -> Callable[[AggregateCall], Expression]:
    """The mean of one of two numbers, of the type that AVG has."""

    def bind(aggregate: AggregateCall) -> Expression:
        values = require_numbers(aggregate)
        if aggregate.is_distinct:
            pairs = _Pairs.of(aggregate)
            return pairs.second_mean() if position else pairs.first_mean()
        argument = _where_all(values, values[position], aggregate)
        return average(replace(aggregate, arguments=(argument,), condition=None))

    return bind


def _of_pairs(template: str, *parts: Callable[[_Pairs], Expression]) -> Callable[[AggregateCall], Expression]:
    """A function of values of pairs."""

    def bind(aggregate: AggregateCall) -> Expression:
        pairs = _Pairs.of(aggregate)
        return _made(aggregate, template, *(part(pairs) for part in parts))

    return bind


def _regression(part: Callable[[_Pairs], Expression]) -> Callable[[AggregateCall], Expression]:
    return lambda aggregate: part(_Pairs.of(aggregate))


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction(
        "corr(x, y)",
        "Pearson's correlation.",
        "corr(x, 2 * x) = 1",
        _of_pairs("corr", _Pairs.comoment, _Pairs.first_moment, _Pairs.second_moment, _Pairs.count),
        arguments=2,
    ),
    AggregateFunction(
        "covar_pop(x, y)",
        "The covariance of the population.",
        "covar_pop(x, 2 * x) = 0.5",
        _of_pairs("var_pop", _Pairs.comoment, _Pairs.count),
        arguments=2,
    ),
    AggregateFunction(
        "covar_samp(x, y)",
        "The covariance of a sample; NULL for one row.",
        "covar_samp(x, 2 * x) = 1",
        _of_pairs("var_samp", _Pairs.comoment, _Pairs.count),
        arguments=2,
    ),
    AggregateFunction(
        "kurtosis(x)", "The excess kurtosis; NULL if all values are equal.", "kurtosis(x) = -2", _of_one("kurtosis")
    ),
    AggregateFunction(
        "regr_avgx(y, x)",
        "The mean of `x` on rows on which neither number is NULL.",
        "regr_avgx(2 * x, x) = 1.5",
        _mean(1),
        arguments=2,
    ),
    AggregateFunction(
        "regr_avgy(y, x)",
        "The mean of `y` on rows on which neither number is NULL.",
        "regr_avgy(2 * x, x) = 3",
        _mean(0),
        arguments=2,
    ),
    AggregateFunction(
        "regr_intercept(y, x)",
        "The value of the regression line at 0.",
        "regr_intercept(2 * x, x) = 0",
        _of_pairs(
            "regr_intercept",
            _Pairs.comoment,
            _Pairs.second_moment,
            _Pairs.first_mean,
            _Pairs.second_mean,
        ),
        arguments=2,
    ),
    AggregateFunction(
        "regr_r2(y, x)",
        "The square of the correlation.",
        "regr_r2(2 * x, x) = 1",
        _of_pairs("regr_r2", _Pairs.comoment, _Pairs.first_moment, _Pairs.second_moment),
        arguments=2,
    ),
    AggregateFunction(
        "regr_slope(y, x)",
        "The slope of the regression line.",
        "regr_slope(2 * x, x) = 2",
        _of_pairs("regr_slope", _Pairs.comoment, _Pairs.second_moment),
        arguments=2,
    ),
    AggregateFunction(
        "regr_sxx(y, x)",
        "The sum of the squares of the distances of `x` from its mean.",
        "regr_sxx(2 * x, x) = 0.5",
        _regression(_Pairs.second_moment),
        arguments=2,
    ),
    AggregateFunction(
        "regr_sxy(y, x)",
        "The sum of the products of the distances of `x` and `y` from their means.",
        "regr_sxy(2 * x, x) = 1",
        _regression(_Pairs.comoment),
        arguments=2,
    ),
    AggregateFunction(
        "regr_syy(y, x)",
        "The sum of the squares of the distances of `y` from its mean.",
        "regr_syy(2 * x, x) = 2",
        _regression(_Pairs.first_moment),
        arguments=2,
    ),
    AggregateFunction(
        "skewness(x)", "The skewness; NULL if all values are equal.", "skewness(x) = 0", _of_one("skewness")
    ),
    AggregateFunction(
        "stddev(x)",
        "The standard deviation of a sample; NULL for one row.",
        "stddev(x * x) > 2.1",
        _of_one("m2", "stddev_samp"),
        aliases=("std", "stddev_samp"),
    ),
    AggregateFunction(
        "stddev_pop(x)",
        "The standard deviation of the population.",
        "stddev_pop(x) = 0.5",
        _of_one("m2", "stddev_pop"),
    ),
    AggregateFunction("var_pop(x)", "The variance of the population.", "var_pop(x) = 0.25", _of_one("m2", "var_pop")),
    AggregateFunction(
        "var_samp(x)",
        "The variance of a sample; NULL for one row.",
        "var_samp(x) = 0.5",
        _of_one("m2", "var_samp"),
        aliases=("variance",),
    ),
)

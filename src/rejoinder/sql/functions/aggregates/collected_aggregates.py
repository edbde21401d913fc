"""Aggregates that are computed from the list of the values of a group: bitmaps, and the product.

A change of a group costs the list, as `collect_list` does.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.ir.expressions.expression import Expression
from rejoinder.sql.functions.aggregates.aggregate_function import (
    AggregateCall,
    AggregateFunction,
    require_numbers,
)
from rejoinder.sql.functions.aggregates.ordered_aggregates import collected
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast
from rejoinder.sql.types.terms import Term, call, mismatch


def _of_list(
    name: str, kind: pa.DataType, prepared: Callable[[AggregateCall], Expression], *, distinct: bool, can_fail: bool
) -> Callable[[AggregateCall], Expression]:
    """An aggregate that a template makes of the list of values."""

    def bind(aggregate: AggregateCall) -> Expression:
        values = collected(aggregate, prepared(aggregate), distinct=distinct)
        result = call(name, kind, Term(values.node), evaluation="all", can_fail=can_fail)
        return Expression(result.node, text_of(aggregate.node))

    return bind


def _position(aggregate: AggregateCall) -> Expression:
    (argument,) = aggregate.arguments
    if not spark_types.is_integer(argument.type):
        kind = spark_types.spark_name(argument.type)
        raise mismatch(aggregate.node, f"a position is an integer, not {kind}", "use bitmap_bit_position(x)")
    return Expression(cast(Term(argument.node), spark_types.BIGINT, aggregate.node).node, argument.text)


def _bitmap(aggregate: AggregateCall) -> Expression:
    (argument,) = aggregate.arguments
    if argument.type != spark_types.BINARY:
        kind = spark_types.spark_name(argument.type)
        raise mismatch(aggregate.node, f"a bitmap is BINARY, not {kind}", "make it with bitmap_construct_agg(x)")
    return argument


def _factor(aggregate: AggregateCall) -> Expression:
    (argument,) = require_numbers(aggregate)
    return Expression(cast(Term(argument.node), spark_types.DOUBLE, aggregate.node).node, argument.text)


_BINARY = spark_types.BINARY

AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction(
        "bitmap_and_agg(bitmap)", "The bits that all bitmaps have.",
        "hex(bitmap_and_agg(unhex(CASE WHEN x = 1 THEN '03' ELSE '01' END))) LIKE '0100%'",
        _of_list("bitmap_and", _BINARY, _bitmap, distinct=True, can_fail=False),
    ),
    AggregateFunction(
        "bitmap_construct_agg(position)", "The bitmap of 4,096 bytes that has the bits at all positions.",
        "bitmap_count(bitmap_construct_agg(x)) = 2",
        _of_list("bitmap_construct", _BINARY, _position, distinct=True, can_fail=True),
    ),
    AggregateFunction(
        "bitmap_or_agg(bitmap)", "The bits that a bitmap has.",
        "hex(bitmap_or_agg(unhex(CASE WHEN x = 1 THEN '02' ELSE '01' END))) LIKE '0300%'",
        _of_list("bitmap_or", _BINARY, _bitmap, distinct=True, can_fail=False),
    ),
    AggregateFunction(
        "product(x)", "The product of the numbers as DOUBLE, multiplied in ascending order.", "product(x) = 2",
        _of_list("product", spark_types.DOUBLE, _factor, distinct=False, can_fail=False),
    ),
)  # fmt: skip

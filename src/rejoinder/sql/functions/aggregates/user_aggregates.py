"""Aggregates that the user declared: the entry of one, made from its declaration."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from rejoinder.ir.aggregate_calls import Call
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.user_functions import UserFunction
from rejoinder.sql.functions.aggregates.aggregate_function import AggregateCall, AggregateFunction, Primitive
from rejoinder.sql.functions.user_calls import declared_type
from rejoinder.sql.types.terms import Term, call


def user_aggregate(function: UserFunction) -> AggregateFunction:
    """Return the entry of a declared aggregate."""
    bind = partial(_bound, function)
    name, _, rest = function.signature.partition("(")
    return AggregateFunction(f"{name.lower()}({rest}", "", "", bind, arguments=len(function.arguments))


def _bound(function: UserFunction, aggregate: AggregateCall) -> Expression:
    """The value of a state over structs of the arguments; a row that FILTER leaves out has NULL instead of a struct."""
    terms = [
        declared_type(Term(argument.node), field, aggregate.node, function)
        for argument, field in zip(aggregate.arguments, function.arguments, strict=True)
    ]
    kind = pa.struct(list(function.arguments))
    row = call("struct", kind, *terms, evaluation="all", nulls="never")
    text = ", ".join(argument.text for argument in aggregate.arguments)
    argument = aggregate.filtered(Expression(row.node, text))
    primitive = Call("user", argument, function.result, user=function)
    return aggregate.value(Primitive(primitive, (argument,) if aggregate.is_distinct else ()))

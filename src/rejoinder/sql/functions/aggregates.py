"""The registry of aggregate functions: how one is called, and of which primitive calls its result is made.

The plan has four primitives, `count`, `sum`, `min` and `max`. All of them ignore NULL.

    AVG(x)                        →  SUM(x) / COUNT(x)
    SUM(x) FILTER (WHERE c)       →  SUM(CASE WHEN c THEN x END)
    COUNT(a, b)                   →  COUNT(CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN TRUE END)
    COUNT_IF(c)                   →  COUNT(CASE WHEN c THEN TRUE END)
    ANY_VALUE(x), BOOL_AND(x)     →  MIN(x)      -- the minimum, so that ANY_VALUE is deterministic
    BOOL_OR(x)                    →  MAX(x)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions import operators
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.nodes import And, Literal
from rejoinder.ir.logical import Call, Function
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Term, call, mismatch, refuse


@dataclass(frozen=True)
class Primitive:
    """A call of the plan; with `distinct`, over each different combination of these expressions once."""

    call: Call
    distinct: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class AggregateCall:
    """A call with compiled arguments, none for COUNT(*)."""

    node: exp.Expr
    name: str
    arguments: tuple[Expression, ...]
    is_distinct: bool
    condition: Expression | None
    """The condition of FILTER."""
    named: Callable[[Primitive], str]
    """Adds a primitive to the plan, and returns the column of its values."""

    def primitive(self, function: Function, argument: Expression, kind: pa.DataType) -> Expression:
        """The value of a primitive over the rows that FILTER keeps, with DISTINCT over different values only."""
        argument = self.filtered(argument)
        return self.value(Primitive(Call(function, argument, kind), (argument,) if self.is_distinct else ()))

    def value(self, primitive: Primitive) -> Expression:
        """The value of a primitive."""
        return column(self.named(primitive), primitive.call.type)

    def filtered(self, argument: Expression) -> Expression:
        """An argument that is NULL where the condition of FILTER does not hold."""
        if self.condition is None:
            return argument
        return Expression(operators.when(self.condition.node, argument.node), argument.text)


@dataclass(frozen=True)
class AggregateFunction:
    """The entry of an aggregate."""

    signature: str
    """Name and arguments, as a hint shows them."""
    doc: str
    """One sentence for the list of functions."""
    example: str
    """A condition that is TRUE over three rows with x = 1, 2, NULL. The tests evaluate it."""
    bind: Callable[[AggregateCall], Expression]
    """Makes the result of a call. Raises a `PlanningError`."""
    _: KW_ONLY
    parsed: type[exp.Expr] | None = None
    """The class that sqlglot parses a call to; None for a function that it does not know."""
    aliases: tuple[str, ...] = ()
    arguments: int | None = 1
    """How many arguments there are; None: one or more, or `*`."""

    @property
    def name(self) -> str:
        """The name, in lower case."""
        return self.signature.partition("(")[0]

    @property
    def signatures(self) -> dict[str, str]:
        """Signatures by all names."""
        rest = self.signature.removeprefix(self.name)
        return {name: f"{name}{rest}" for name in (self.name, *self.aliases)}


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
        return aggregate.value(Primitive(Call("count", present, spark_types.BIGINT), counted))
    nullable = [argument for argument in arguments if argument.node.nullable or argument.can_fail]
    if not nullable and aggregate.condition is None:
        return aggregate.value(Primitive(Call("count", None, spark_types.BIGINT)))
    if len(nullable) == 1 and aggregate.condition is None and _is_plain(nullable[0].type):
        return aggregate.value(Primitive(Call("count", nullable[0], spark_types.BIGINT)))
    conditions = [] if aggregate.condition is None else [aggregate.condition]
    return _count_where(aggregate, [*conditions, _all_present(nullable)] if nullable else conditions)


def _regression_count(aggregate: AggregateCall) -> Expression:
    """Count the pairs of numbers."""
    for argument in aggregate.arguments:
        if not spark_types.is_numeric(argument.type):
            kind = spark_types.spark_name(argument.type)
            raise mismatch(aggregate.node, f"`{aggregate.name}` needs numbers, not {kind}", "CAST it to a number")
    return _count(aggregate)


def _count_if(aggregate: AggregateCall) -> Expression:
    _require_condition(aggregate)
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
    argument = _number(aggregate)
    return aggregate.primitive("sum", argument, sum_type(argument.type))


def _average(aggregate: AggregateCall) -> Expression:
    argument = _number(aggregate)
    kind = argument.type
    if kind == spark_types.BIGINT:  # as Spark does: no sum is too large for a DOUBLE
        argument = Expression(coerce(Term(argument.node), spark_types.DOUBLE, aggregate.node).node, argument.text)
    total = aggregate.primitive("sum", argument, sum_type(argument.type))
    count = aggregate.primitive("count", argument, spark_types.BIGINT)
    is_decimal = spark_types.is_decimal(kind)
    result = spark_types.bounded_decimal(kind.precision + 4, kind.scale + 4) if is_decimal else spark_types.DOUBLE
    quotient = call("average", result, Term(total.node), Term(count.node), can_fail=is_decimal)
    return Expression(quotient.node, text_of(aggregate.node))


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
        _require_condition(aggregate)
        return _extreme(function)(aggregate)

    return bind


def _require_condition(aggregate: AggregateCall) -> None:
    (argument,) = aggregate.arguments
    if argument.type != spark_types.BOOLEAN:
        kind = spark_types.spark_name(argument.type)
        raise mismatch(aggregate.node, f"`{aggregate.name}` needs a condition, not {kind}", "compare it")


def _number(aggregate: AggregateCall) -> Expression:
    (argument,) = aggregate.arguments
    if pa.types.is_null(argument.type):
        raise mismatch(aggregate.node, "the type of NULL is not known", "CAST it")
    if not spark_types.is_numeric(argument.type):
        kind = spark_types.spark_name(argument.type)
        raise mismatch(aggregate.node, f"`{aggregate.name}` needs a number, not {kind}", "CAST it to a number")
    return argument


def _is_plain(kind: pa.DataType) -> bool:
    return not spark_types.is_nested(kind) and not pa.types.is_null(kind)


def _all_present(arguments: Sequence[Expression]) -> Expression:
    text = ", ".join(argument.text for argument in arguments)
    return _present(Expression(And([operators.is_not_null(argument.node) for argument in arguments]), text))


def _present(condition: Expression) -> Expression:
    """TRUE where a condition holds, else NULL: what COUNT counts."""
    return Expression(operators.when(condition.node, Literal(True, spark_types.BOOLEAN)), condition.text)


AGGREGATES = (
    AggregateFunction(
        "any_value(x)", "The smallest value that is not NULL.", "any_value(x) = 1", _extreme("min"), parsed=exp.AnyValue
    ),
    AggregateFunction("avg(x)", "The mean.", "avg(x) = 1.5", _average, parsed=exp.Avg, aliases=("mean",)),
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
        aliases=("some",),
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
)

BY_CLASS: dict[type[exp.Expr], AggregateFunction] = {
    aggregate.parsed: aggregate for aggregate in AGGREGATES if aggregate.parsed is not None
}
BY_NAME: dict[str, AggregateFunction] = {name: aggregate for aggregate in AGGREGATES for name in aggregate.signatures}


def aggregate_of(node: exp.Expr) -> AggregateFunction | None:
    """The aggregate that a node calls."""
    return BY_NAME.get(node.name.lower()) if isinstance(node, exp.Anonymous) else BY_CLASS.get(type(node))


def argument_nodes(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call of an aggregate."""
    parts = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.args.get("expression")]
    rest = [] if isinstance(node, exp.Anonymous) else node.expressions
    return [part for part in (*parts, *rest) if part is not None]

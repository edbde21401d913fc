"""The entry of an aggregate in the registry: how it is called, and of which primitive calls its result is made.

All primitives ignore NULL.

    AVG(x)                        →  SUM(x) / COUNT(x)
    SUM(x) FILTER (WHERE c)       →  SUM(CASE WHEN c THEN x END)
    COUNT(a, b)                   →  COUNT(CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN TRUE END)
    COUNT_IF(c)                   →  COUNT(CASE WHEN c THEN TRUE END)
    ANY_VALUE(x), BOOL_AND(x)     →  MIN(x)      -- the minimum, so that ANY_VALUE is deterministic
    BOOL_OR(x)                    →  MAX(x)
    VAR_POP(x)                    →  M2(x) / COUNT(x)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.aggregate_calls import Call, Function
from rejoinder.ir.expressions import operators
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import mismatch


@dataclass(frozen=True)
class SortedBy:
    """An expression by which values are ordered."""

    value: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class CountedValues:
    """Values of a group in order, of which equal ones are counted."""

    order: tuple[SortedBy, ...]
    """All that is read, and the order."""
    present: Expression
    """Values of rows on which this is NULL do not count."""
    is_distinct: bool = False
    """Whether equal values count once."""
    most_frequent_first: bool = False


@dataclass(frozen=True)
class Primitive:
    """A call of the plan; with `distinct`, over each different combination of these expressions once."""

    call: Call
    distinct: tuple[Expression, ...] = ()
    over: Callable[[Sequence[Expression]], Expression] | None = field(default=None, compare=False)
    """Makes the argument of the call from the columns of the distinct expressions, if it is not one of them."""
    counted: CountedValues | None = None
    """The values that a call needs in order; its argument is one of the expressions there, or None for their number."""

    @property
    def arguments(self) -> list[Expression]:
        """All that is read."""
        ordered = [] if self.counted is None else [each.value for each in self.counted.order]
        return [e for e in (self.call.argument, *self.distinct, *ordered) if e is not None]


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
    order: tuple[SortedBy, ...] = ()
    """ORDER BY among the arguments, or WITHIN GROUP."""

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
    arguments: int | tuple[int, ...] | None = 1
    """How many arguments there are, or may be; None: one or more, or `*`."""
    sketch: str = ""
    """The call that its first argument must be; its arguments come first then."""
    takes_order: bool = False
    """Whether ORDER BY may be written: among the arguments, or WITHIN GROUP."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of arguments that it takes; none if there may be any number."""
        if self.arguments is None:
            return ()
        return self.arguments if isinstance(self.arguments, tuple) else (self.arguments,)

    @property
    def name(self) -> str:
        """The name, in lower case."""
        return self.signature.partition("(")[0]

    @property
    def signatures(self) -> dict[str, str]:
        """Signatures by all names."""
        rest = self.signature.removeprefix(self.name)
        return {name: f"{name}{rest}" for name in (self.name, *self.aliases)}


def require_condition(aggregate: AggregateCall) -> None:
    """Raise `TypeMismatch` unless the argument is a condition."""
    (argument,) = aggregate.arguments
    if argument.type != spark_types.BOOLEAN:
        kind = spark_types.spark_name(argument.type)
        raise mismatch(aggregate.node, f"`{aggregate.name}` needs a condition, not {kind}", "compare it")


def require_numbers(aggregate: AggregateCall) -> tuple[Expression, ...]:
    """The arguments, if all are numbers. Raises `TypeMismatch`."""
    wanted = "a number" if len(aggregate.arguments) == 1 else "numbers"
    for argument in aggregate.arguments:
        if pa.types.is_null(argument.type):
            raise mismatch(aggregate.node, "the type of NULL is not known", "CAST it")
        if not spark_types.is_numeric(argument.type):
            kind = spark_types.spark_name(argument.type)
            raise mismatch(aggregate.node, f"`{aggregate.name}` needs {wanted}, not {kind}", "CAST it to a number")
    return aggregate.arguments

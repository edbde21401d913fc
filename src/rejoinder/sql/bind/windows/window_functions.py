"""Window functions: of which primitive calls each one is made, and Spark's type of its result.

ROW_NUMBER is a count up to the row. A function over the whole partition, and the number of rows that PERCENT_RANK,
CUME_DIST and NTILE need, are aggregates of groups that are joined with the rows. LAST_VALUE to the end of a partition
is the first value in the opposite order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql
from rejoinder.ir.aggregate_calls import Call
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.operators import coalesce
from rejoinder.ir.window_calls import TO_ROW, Frame, WindowCall, WindowFunction
from rejoinder.sql.bind.groups.aggregate_functions import bind_call, is_aggregate, read_call
from rejoinder.sql.bind.predicates import converted
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.bind.windows.window_frames import FrameBounds, constant
from rejoinder.sql.bind.windows.window_syntax import Called
from rejoinder.sql.functions.aggregates.aggregate_function import Primitive
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.functions.refusals import unsupported
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term, call, mismatch, refuse

_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile)
_VALUES = (exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.NthValue)
_OFFERED = (
    "window functions: ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, NTILE, LAG, LEAD, FIRST_VALUE, "
    "LAST_VALUE, NTH_VALUE, and aggregates"
)
_BEFORE_ROW = Frame("rows", None, -1)


class Primitives(Protocol):
    """Where the primitive calls of a SELECT are collected, each once: the column that holds the value of a call."""

    def call(self, call: WindowCall, *, reverse: bool = False) -> str:
        """A call over the partition in its order, or in the opposite one."""

    def total(self, primitive: Primitive) -> str:
        """An aggregate over the whole partition."""

    def input(self, expression: Expression) -> str:
        """The column that holds an expression of a row."""


@dataclass(frozen=True)
class WindowBinder:
    """Binds the function of one window."""

    window: exp.Window
    scope: Scope
    bounds: FrameBounds
    is_ordered: bool
    primitives: Primitives

    def bind(self) -> Expression:
        """The result, over columns of primitives. Raises a `PlanningError`."""
        called = Called.of(self.window)
        function = called.function
        if isinstance(function, (exp.Lag, exp.Lead, *_RANKS)):
            self._check_ranking(function)
        if isinstance(function, _RANKS):
            if called.condition is not None or called.skips_nulls:
                raise refuse(self.window, f"`{function.key}` takes neither FILTER nor IGNORE NULLS")
            return self._rank(function)
        if isinstance(function, (exp.Lag, exp.Lead, *_VALUES)):
            if called.condition is not None:
                raise refuse(self.window, "FILTER is for aggregates only", "use CASE WHEN … THEN x END as argument")
            if isinstance(function, exp.Lag | exp.Lead):
                return self._offset(function, skips_nulls=called.skips_nulls)
            return self._value(function, skips_nulls=called.skips_nulls)
        if is_aggregate(function):
            return self._aggregate()
        if not isinstance(function, exp.Func):
            raise unsupported(function)
        raise refuse(self.window, f"`{text_of(function)}` is not a window function", _OFFERED)

    def _check_ranking(self, function: exp.Expr) -> None:
        name = function.sql_name() if isinstance(function, exp.Func) else function.key
        if not self.is_ordered:
            raise InvalidSql(
                f"{name} needs an ORDER BY in its window",
                detail=f"in `{text_of(self.window)}`",
                hint="rows of a partition have no order of their own: OVER (PARTITION BY … ORDER BY …)",
            )
        if self.window.args.get("spec") is not None:
            raise InvalidSql(
                f"{name} takes no frame", detail=f"in `{text_of(self.window)}`", hint="leave out ROWS or RANGE"
            )

    # -- ranks --------------------------------------------------------------------------------------------------------

    def _rank(self, function: exp.Expr) -> Expression:
        number = WindowCall("count", None, pa.int64())
        match function:
            case exp.RowNumber():
                return self._made("rank", spark_types.INT, self._call(number))
            case exp.Rank():
                return self._made("rank", spark_types.INT, self._ranked("rank"))
            case exp.DenseRank():
                return self._made("rank", spark_types.INT, self._ranked("dense_rank"))
            case exp.PercentRank():
                return self._made("percent_rank", spark_types.DOUBLE, self._ranked("rank"), self._rows())
            case exp.CumeDist():
                up_to = self._call(replace(number, frame=Frame("groups", None, 0)))
                return self._made("cume_dist", spark_types.DOUBLE, up_to, self._rows())
        buckets = constant(function.this) if function.this is not None else 1
        if not isinstance(buckets, int) or not 0 < buckets < 1 << 31:
            raise InvalidSql(
                "NTILE takes a positive whole number that is written down",
                detail=f"in `{text_of(self.window)}`",
                hint="as in NTILE(4)",
            )
        return self._made("ntile", spark_types.INT, self._call(number), self._rows(), options=(buckets,))

    def _ranked(self, function: WindowFunction) -> Expression:
        return self._call(WindowCall(function, None, pa.int64()))

    def _rows(self) -> Expression:
        """How many rows the partition has."""
        return column(self.primitives.total(Primitive(Call("count", None, pa.int64()))), pa.int64())

    # -- values of other rows -----------------------------------------------------------------------------------------

    def _offset(self, function: exp.Lag | exp.Lead, *, skips_nulls: bool) -> Expression:
        given = function.args.get("offset")
        distance = 1 if given is None else constant(given)
        if not isinstance(distance, int) or abs(distance) >= 1 << 31:
            raise InvalidSql(
                f"the offset of {function.sql_name()} must be a whole number that is written down",
                detail=f"in `{text_of(self.window)}`",
                hint=f"as in {function.sql_name()}(x, 1)",
            )
        steps = -distance if isinstance(function, exp.Lag) else distance
        argument = self._argument(function.this)
        default = function.args.get("default")
        other = None
        if default is not None and not isinstance(default, exp.Null):
            other = converted(compile_expression(default, self.scope), argument.type, self.window)
        name = self.primitives.input(argument)
        if not skips_nulls:
            filled = None if other is None else self.primitives.input(other)
            return self._call(WindowCall("offset", name, argument.type, number=steps, default=filled))
        if abs(steps) != 1:
            raise refuse(
                self.window,
                f"IGNORE NULLS with an offset of {distance} is not supported",
                "use an offset of 1, or filter the rows that are NULL in a subquery",
            )
        last = WindowCall("last", name, argument.type, _BEFORE_ROW, skips_nulls=True)
        value = self._call(last, reverse=steps > 0)
        if other is None:
            return value
        held = column(self.primitives.input(other), other.type)
        return Expression(coalesce([value.node, held.node]))

    def _value(self, function: exp.Expr, *, skips_nulls: bool) -> Expression:
        """FIRST_VALUE, LAST_VALUE, NTH_VALUE."""
        if not self.is_ordered:
            raise InvalidSql(
                f"{function.sql_name() if isinstance(function, exp.Func) else function.key} needs an ORDER BY",
                detail=f"in `{text_of(self.window)}`",
                hint="rows of a partition have no order of their own; MIN and MAX need none",
            )
        number = 1
        if isinstance(function, exp.NthValue):
            given = constant(function.args["offset"]) if function.args.get("offset") is not None else None
            if not isinstance(given, int) or given < 1:
                raise InvalidSql(
                    "NTH_VALUE takes a positive whole number that is written down",
                    detail=f"in `{text_of(self.window)}`",
                    hint="as in NTH_VALUE(x, 2)",
                )
            number = given
        argument = self._argument(function.this)
        is_last = isinstance(function, exp.Last | exp.LastValue)
        value = WindowCall("last" if is_last else "nth", self.primitives.input(argument), argument.type)
        value = replace(value, number=0 if is_last else number, skips_nulls=skips_nulls)
        if self.bounds.is_whole:
            return self._of_partition(value, argument, reverse=is_last)
        if not self.bounds.looks_to_end:
            return self._call(replace(value, frame=self.bounds.frame))
        if number > 1:
            raise refuse(
                self.window, "NTH_VALUE over a frame to the end of the partition is not supported", "use LEAD(x, n)"
            )
        opposite: WindowFunction = "nth" if is_last else "last"
        value = replace(value, function=opposite, number=int(is_last), frame=self.bounds.reversed.frame)
        return self._call(value, reverse=True)

    def _of_partition(self, wanted: WindowCall, argument: Expression, *, reverse: bool) -> Expression:
        """The value of one row of the partition: the row whose number is asked for is found by its running count."""
        number = max(wanted.number, 1)
        if number == 1 and not wanted.skips_nulls:
            return self._call(replace(wanted, function="nth", number=1, frame=TO_ROW), reverse=reverse)
        if spark_types.is_nested(argument.type):
            kind = spark_types.spark_name(argument.type)
            raise refuse(self.window, f"a {kind} here is not supported", "take its fields or elements")
        value = column(self.primitives.input(argument), argument.type)
        counted = WindowCall("count", wanted.argument if wanted.skips_nulls else None, pa.int64())
        count = self._call(counted, reverse=reverse)
        held = self._made("value_of_row", argument.type, count, value, options=(number,))
        return column(self.primitives.total(Primitive(Call("max", held, argument.type))), argument.type)

    # -- aggregates ---------------------------------------------------------------------------------------------------

    def _aggregate(self) -> Expression:
        aggregate = read_call(self.window.this)
        if aggregate.is_distinct:
            raise refuse(
                self.window,
                "DISTINCT is not supported in a window function",
                "Spark does not support it either; GROUP BY in a subquery and join it",
            )

        def named(primitive: Primitive) -> str:
            if self.bounds.is_whole:
                return self.primitives.total(primitive)
            argument, function = primitive.call.argument, primitive.call.function
            if function not in ("count", "sum", "min", "max"):
                raise refuse(
                    self.window,
                    f"`{aggregate.function.name}` is supported only over a whole partition",
                    "leave out ORDER BY and the frame, or join the rows with themselves and GROUP BY",
                )
            name = None if argument is None else self.primitives.input(argument)
            bounds = self.bounds.reversed if self.bounds.looks_to_end else self.bounds
            made = WindowCall(function, name, primitive.call.type, bounds.frame)
            return self.primitives.call(made, reverse=self.bounds.looks_to_end)

        return bind_call(aggregate, self.scope, named)

    def _argument(self, node: exp.Expr) -> Expression:
        made = compile_expression(node, self.scope)
        if pa.types.is_null(made.type):
            raise mismatch(self.window, "the type of NULL is not known", "CAST it")
        return made

    def _call(self, primitive: WindowCall, *, reverse: bool = False) -> Expression:
        return column(self.primitives.call(primitive, reverse=reverse), primitive.type)

    def _made(self, name: str, kind: pa.DataType, *parts: Expression, options: tuple[int, ...] = ()) -> Expression:
        terms = [Term(part.node) for part in parts]
        return Expression(call(name, kind, *terms, options=options, evaluation="all").node, text_of(self.window))

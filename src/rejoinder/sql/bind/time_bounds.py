"""Bounds in time: what a comparison says about how far two columns of times can be apart.

A part of a condition is used if it can be brought to the form `a >= b - constant`, a and b being times of different
inputs: `>=`, `>`, `<=`, `<`, `=` (both ways), BETWEEN, NOT of a comparison, with intervals or numbers added on either
side; or the difference of the two in days (datediff) or in whole units (timestampdiff). A time is a column, or what
rises with one, such as the start of a window: equal windows bound the times in them.

Times are integers of any width; or dates and timestamps, which are all counted in microseconds here. So `a > b` is
`a >= b + 1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import PlanningError
from rejoinder.ir.expression import Expression
from rejoinder.ir.logical import Bound, bound_between
from rejoinder.ir.monotone import Step, shift
from rejoinder.ir.nodes import Call
from rejoinder.ir.scalar_operation import MonotoneArgument, ScalarOperation
from rejoinder.sql.functions.expression_compiler import Scope, compile_expression
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.interval_literals import MICROS, interval_of

_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {exp.GTE: exp.LTE, exp.GT: exp.LT}
_OPPOSITE: dict[type[exp.Expr], type[exp.Binary]] = {exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT, exp.LT: exp.GTE}


@dataclass(frozen=True)
class _Linear:
    """Times with integer factors plus a constant: a number, which beside dates is of days, and microseconds."""

    columns: Mapping[Expression, int]
    number: int = 0
    micros: int = 0

    def plus(self, other: _Linear, sign: int = 1) -> _Linear:
        columns = dict(self.columns)
        for each, factor in other.columns.items():
            columns[each] = columns.get(each, 0) + sign * factor
        return _Linear(columns, self.number + sign * other.number, self.micros + sign * other.micros)

    def times(self, factor: int) -> _Linear:
        columns = {each: factor * own for each, own in self.columns.items()}
        return _Linear(columns, factor * self.number, factor * self.micros)

    @property
    def is_number(self) -> bool:
        return not self.columns and not self.micros

    @property
    def apart(self) -> tuple[Expression, Expression, int] | None:
        """(later, earlier, constant) if this is `later - earlier + constant`, of times of different inputs."""
        factors = [(factor, time) for time, factor in self.columns.items() if factor]
        if sorted(factor for factor, _ in factors) != [-1, 1]:
            return None
        later, earlier = (next(time for factor, time in factors if factor == sign) for sign in (1, -1))
        if _input(later) == _input(earlier):
            return None
        if all(pa.types.is_timestamp(time.type) for time in (later, earlier)):
            return later, earlier, self.number * MICROS["DAY"] + self.micros
        is_counted = all(spark_types.is_integer(time.type) for time in (later, earlier)) and not self.micros
        return (later, earlier, self.number) if is_counted else None


def bounds_of(node: exp.Expr, scope: Scope) -> tuple[Bound, ...]:
    """The bounds that one part of a condition gives; none if it is of no use for that."""
    if isinstance(node, exp.Not):
        inner = node.this.unnest()
        opposite = _OPPOSITE.get(type(inner))
        return () if opposite is None else bounds_of(opposite(this=inner.this, expression=inner.expression), scope)
    if type(node) in _MIRRORED:
        return bounds_of(_MIRRORED[type(node)](this=node.expression, expression=node.this), scope)
    if not isinstance(node, exp.EQ | exp.LTE | exp.LT):
        return ()
    unit, left, right = _in_unit(node.this, node.expression, scope)
    if left is None or right is None:
        return ()
    apart = right.plus(left, -1).apart  # 0 <= later - earlier + constant
    if apart is None:
        return ()
    later, earlier, slack = apart
    strict = unit if isinstance(node, exp.LT) else 0
    found = [bound_between(later, earlier, shift(strict - slack - (unit - 1)))]
    found += [bound_between(earlier, later, shift(slack - (unit - 1)))] if isinstance(node, exp.EQ) else []
    return tuple(bound for bound in found if bound is not None)


def equal_bounds(left: Expression, right: Expression) -> tuple[Bound, ...]:
    """The bounds that the equality of two expressions of different inputs gives."""
    if left.monotone is None or right.monotone is None:
        return ()
    apart = _Linear({_counted(left): 1, _counted(right): -1}).apart
    found = () if apart is None else (bound_between(*apart[:2]), bound_between(apart[1], apart[0]))
    return tuple(bound for bound in found if bound is not None)


def _input(time: Expression) -> str:
    return time.columns[0].split(".", 1)[0]


def _in_unit(left: exp.Expr, right: exp.Expr, scope: Scope) -> tuple[int, _Linear | None, _Linear | None]:
    """Read two sides that are compared. If one is a TIMESTAMPDIFF: its unit, and both in microseconds.

    Whole units are cut towards zero: the difference is less than one unit away from them, on either side.
    """
    for one, other in ((left, right), (right, left)):
        if isinstance(one.unnest(), exp.TimestampDiff):
            unit, number = MICROS[one.unnest().args["unit"].name.upper()], _linear(other, scope)
            whole = None if number is None or not number.is_number else _Linear({}, 0, number.number * unit)
            difference = _difference(one.unnest(), scope)
            return (unit, difference, whole) if one is left else (unit, whole, difference)
    return 1, _linear(left, scope), _linear(right, scope)


def _linear(node: exp.Expr, scope: Scope) -> _Linear | None:
    """Read an expression as a sum of times and constants."""
    node = node.unnest()
    if (
        isinstance(node, exp.Cast)
        and isinstance(node.this, exp.Literal)
        and spark_types.is_integer(spark_types.arrow_type(node.to))
    ):
        node = node.this  # so 3L is written
    if isinstance(node, exp.Literal):
        return _Linear({}, int(node.this)) if not node.is_string and node.this.isdigit() else None
    if isinstance(node, exp.Interval):
        return _interval(node)
    if isinstance(node, exp.Neg):
        inner = _linear(node.this, scope)
        return None if inner is None else inner.times(-1)
    if isinstance(node, exp.DateDiff):
        return _difference(node, scope)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return _time(node, scope)
    left, right = _linear(node.this, scope), _linear(node.expression, scope)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Mul):
        plain = next((one for one in (left, right) if one.is_number), None)
        return None if plain is None else (right if plain is left else left).times(plain.number)
    return left.plus(right, -1 if isinstance(node, exp.Sub) else 1)


def _difference(node: exp.Expr, scope: Scope) -> _Linear | None:
    """Read the difference of two times; DATEDIFF is that of their days."""
    parts = [node.this, node.expression]
    if isinstance(node, exp.DateDiff):
        parts = [exp.cast(part.this if isinstance(part, exp.TsOrDsToDate) else part, "DATE") for part in parts]
    end, start = (_linear(part, scope) for part in parts)
    return None if end is None or start is None else end.plus(start, -1)


def _time(node: exp.Expr, scope: Scope) -> _Linear | None:
    """Read a column, or what rises with one."""
    try:
        made = compile_expression(node, scope)
    except PlanningError:
        return None
    return None if made.monotone is None else _Linear({_counted(made): 1})


def _counted(time: Expression) -> Expression:
    """A time as something that is counted in microseconds, if it is a date."""
    if time.type != spark_types.DATE:
        return time
    operation = ScalarOperation("CAST({0} AS TIMESTAMP)", monotone=MonotoneArgument(0, (Step(unit=MICROS["DAY"]),)))
    return Expression(Call(operation, (time.node,), spark_types.TIMESTAMP), time.text)


def _interval(node: exp.Interval) -> _Linear | None:
    try:
        length = interval_of(node)
    except PlanningError:
        return None
    return None if length is None or length.months else _Linear({}, 0, length.micros)

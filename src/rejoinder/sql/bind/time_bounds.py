"""Derive bounds from conditions: how far apart two time columns of a result row can be.

    ON o.id = d.id AND d.ts <= o.ts + INTERVAL 1 HOUR   →  o.ts >= d.ts - 1 hour
    ON TUMBLE(a.ts, …) = TUMBLE(b.ts, …)                →  start(a.ts) >= start(b.ts), and the reverse

A conjunct gives a bound if it can be brought to the form `a >= b - constant`, where `a` and `b` are times of different
inputs. It can be a comparison (`=` gives two bounds), BETWEEN, or NOT of a comparison, with intervals or numbers added
on either side; or a comparison of DATEDIFF or TIMESTAMPDIFF with a number. A time is a column or a monotone expression
of one, such as the start of a window.

Times are integers of any width, or dates and timestamps, which are measured in microseconds. So `a > b` is
`a >= b + 1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import PlanningError
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.monotone import shift
from rejoinder.ir.expressions.nodes import Cast
from rejoinder.ir.identities import column_id
from rejoinder.ir.logical import Bound, bound_between
from rejoinder.sql.functions.expression_compiler import Scope, compile_expression
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.flow_zone import is_local
from rejoinder.sql.types.interval_literals import MICROS, interval_of

_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {exp.GTE: exp.LTE, exp.GT: exp.LT}
_OPPOSITE: dict[type[exp.Expr], type[exp.Binary]] = {exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT, exp.LT: exp.GTE}


@dataclass(frozen=True)
class _Linear:
    """A linear expression: times with integer factors, plus a constant.

    The constant has two parts, microseconds and a plain `number`, which counts days if the times are dates.
    """

    columns: Mapping[Expression, int]
    number: int = 0
    micros: int = 0

    def plus(self, other: _Linear, sign: int = 1) -> _Linear:
        columns = dict(self.columns)
        for time, factor in other.columns.items():
            columns[time] = columns.get(time, 0) + sign * factor
        return _Linear(columns, self.number + sign * other.number, self.micros + sign * other.micros)

    def times(self, factor: int) -> _Linear:
        columns = {time: factor * own for time, own in self.columns.items()}
        return _Linear(columns, factor * self.number, factor * self.micros)

    @property
    def is_number(self) -> bool:
        return not self.columns and not self.micros

    @property
    def apart(self) -> tuple[Expression, Expression, int] | None:
        """Return (later, earlier, constant) if this is `later - earlier + constant` with times of different inputs."""
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
    """Return the bounds that follow from a conjunct."""
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
    bounds = [bound_between(later, earlier, shift(strict - slack - (unit - 1)))]
    bounds += [bound_between(earlier, later, shift(slack - (unit - 1)))] if isinstance(node, exp.EQ) else []
    return tuple(bound for bound in bounds if bound is not None)


def equal_bounds(left: Expression, right: Expression) -> tuple[Bound, ...]:
    """Return the bounds that follow from the equality of two expressions of different inputs."""
    if left.monotone is None or right.monotone is None:
        return ()
    apart = _Linear({_in_microseconds(left): 1, _in_microseconds(right): -1}).apart
    bounds = () if apart is None else (bound_between(*apart[:2]), bound_between(apart[1], apart[0]))
    return tuple(bound for bound in bounds if bound is not None)


def _input(time: Expression) -> int:
    return column_id(time.columns[0]).input


def _in_unit(left: exp.Expr, right: exp.Expr, scope: Scope) -> tuple[int, _Linear | None, _Linear | None]:
    """Read the two sides of a comparison. If one is a TIMESTAMPDIFF, return its unit, and both in microseconds.

    TIMESTAMPDIFF truncates towards zero, so the exact difference is less than one unit away, on either side.
    """
    for side, other in ((left, right), (right, left)):
        if isinstance(side.unnest(), exp.TimestampDiff) and not is_local():
            unit, number = MICROS[side.unnest().args["unit"].name.upper()], _linear(other, scope)
            whole = None if number is None or not number.is_number else _Linear({}, 0, number.number * unit)
            difference = _difference(side.unnest(), scope)
            return (unit, difference, whole) if side is left else (unit, whole, difference)
    return 1, _linear(left, scope), _linear(right, scope)


def _linear(node: exp.Expr, scope: Scope) -> _Linear | None:
    """Read an expression as a sum of times and constants."""
    node = node.unnest()
    if (
        isinstance(node, exp.Cast)
        and isinstance(node.this, exp.Literal)
        and spark_types.is_integer(spark_types.arrow_type(node.to))
    ):
        node = node.this  # sqlglot parses 3L as CAST(3 AS BIGINT)
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
    if is_local() and not isinstance(node, exp.Mul):
        if left.columns and right.columns:
            return None  # the difference of local times, which is not that of the instants
        if max(abs(left.micros), abs(right.micros)) >= MICROS["DAY"]:
            return _time(node, scope)  # days on the calendar: its monotone function says how long they may be
    if isinstance(node, exp.Mul):
        plain = next((side for side in (left, right) if side.is_number), None)
        return None if plain is None else (right if plain is left else left).times(plain.number)
    return left.plus(right, -1 if isinstance(node, exp.Sub) else 1)


def _difference(node: exp.Expr, scope: Scope) -> _Linear | None:
    """Read the difference of two times; for DATEDIFF, of their days."""
    parts = [node.this, node.expression]
    if isinstance(node, exp.DateDiff):
        parts = [exp.cast(part.this if isinstance(part, exp.TsOrDsToDate) else part, "DATE") for part in parts]
    end, start = (_linear(part, scope) for part in parts)
    return None if end is None or start is None else end.plus(start, -1)


def _time(node: exp.Expr, scope: Scope) -> _Linear | None:
    """Read a column, or a monotone expression of one."""
    try:
        time = compile_expression(node, scope)
    except PlanningError:
        return None
    return None if time.monotone is None else _Linear({_in_microseconds(time): 1})


def _in_microseconds(time: Expression) -> Expression:
    """Cast a date to a timestamp; leave other times as they are."""
    if time.type != spark_types.DATE:
        return time
    return Expression(Cast(time.node, spark_types.TIMESTAMP), time.text)


def _interval(node: exp.Interval) -> _Linear | None:
    try:
        length = interval_of(node)
    except PlanningError:
        return None
    return None if length is None or length.months else _Linear({}, 0, length.micros)

"""Bounds in time: what a comparison says about how far two columns of times can be apart.

A part of a condition is used if it can be brought to the form `a >= b - constant`, a and b being columns of different
inputs: `>=`, `>`, `<=`, `<`, `=` (both ways), BETWEEN, NOT of a comparison, with intervals or numbers added on either
side. Times are integers of microseconds, days, or what an integer column counts, so `a > b` is `a >= b + 1`. The start
of a window is its time, or up to a window's length less: equal windows bound the times in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import PlanningError
from rejoinder.kernels.expression import Expression, column
from rejoinder.plan.logical import Bound
from rejoinder.sql.expressions import Scope, compile_expression
from rejoinder.sql.intervals import MICROS, interval_of

_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {exp.GTE: exp.LTE, exp.GT: exp.LT}
_OPPOSITE: dict[type[exp.Expr], type[exp.Binary]] = {exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT, exp.LT: exp.GTE}


@dataclass(frozen=True)
class _Linear:
    """Times with integer factors plus a constant: a number, and microseconds of intervals.

    A time is a column, or what rises with one: a window's start.
    """

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

    def in_unit(self, kind: pa.DataType) -> int | None:
        """The constant in the unit of a type; None if it does not fit."""
        if pa.types.is_timestamp(kind):
            return None if self.number else self.micros
        if pa.types.is_date32(kind):
            return None if self.micros % MICROS["DAY"] else self.number + self.micros // MICROS["DAY"]
        return None if self.micros or not pa.types.is_signed_integer(kind) else self.number


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
    left, right = _linear(node.this, scope), _linear(node.expression, scope)
    if left is None or right is None:
        return ()
    apart = right.plus(left, -1)  # 0 <= later - earlier + constant
    factors = {factor: column for column, factor in apart.columns.items() if factor}
    if sorted(factors) != [-1, 1] or len([f for f in apart.columns.values() if f]) > len(factors):
        return ()
    later, earlier = factors[1], factors[-1]
    slack = apart.in_unit(later.type) if later.type == earlier.type else None
    if slack is None or _input(earlier) == _input(later):
        return ()
    found = [_bound(later, earlier, slack - isinstance(node, exp.LT))]
    found += [_bound(earlier, later, -slack)] if isinstance(node, exp.EQ) else []
    return tuple(bound for bound in found if bound is not None)


def _bound(later: Expression, earlier: Expression, slack: int) -> Bound | None:
    """What `later >= earlier - slack` says about the columns that the two times rise with."""
    above, below = later.rises, earlier.rises
    if above is None or below is None or above.span is None:
        return None
    columns = [e if e.is_column else column(r.column, e.type) for e, r in ((later, above), (earlier, below))]
    return Bound(columns[0], columns[1], slack + above.span[1], below.steps)


def equal_bounds(left: Expression, right: Expression) -> tuple[Bound, ...]:
    """The bounds that the equality of two columns of different inputs gives."""
    known = left.is_column and right.is_column and left.type == right.type and _Linear({}).in_unit(left.type) == 0
    if not known or _input(left) == _input(right):
        return ()
    return Bound(left, right, 0), Bound(right, left, 0)


def _input(time: Expression) -> str:
    return time.columns[0].split(".", 1)[0]


def _linear(node: exp.Expr, scope: Scope) -> _Linear | None:
    """Read an expression as a sum of columns and constants."""
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return _Linear({}, int(node.this)) if not node.is_string and node.this.isdigit() else None
    if isinstance(node, exp.Interval):
        return _interval(node)
    if isinstance(node, exp.Neg):
        inner = _linear(node.this, scope)
        return None if inner is None else inner.times(-1)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return _time(node, scope)
    left, right = _linear(node.this, scope), _linear(node.expression, scope)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Mul):
        plain = next((one for one in (left, right) if not one.columns and not one.micros), None)
        return None if plain is None else (right if plain is left else left).times(plain.number)
    return left.plus(right, -1 if isinstance(node, exp.Sub) else 1)


def _time(node: exp.Expr, scope: Scope) -> _Linear | None:
    """Read a column, or what rises with one."""
    try:
        made = compile_expression(node, scope)
    except PlanningError:
        return None
    return None if made.rises is None else _Linear({replace(made, text=made.sql): 1})


def _interval(node: exp.Interval) -> _Linear | None:
    try:
        length = interval_of(node)
    except PlanningError:
        return None
    return None if length is None or length.months else _Linear({}, 0, length.micros)

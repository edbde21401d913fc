"""Frames as Spark reads them: ROWS and RANGE BETWEEN … AND …, and what they are without words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import add, mul, sub

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql
from rejoinder.ir.window_calls import Frame
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.interval_literals import interval_of
from rejoinder.sql.types.terms import mismatch, refuse

_DAY = 86_400_000_000
_FOLDED: dict[type[exp.Expr], Callable[..., int | float]] = {exp.Add: add, exp.Sub: sub, exp.Mul: mul}


@dataclass(frozen=True)
class FrameBounds:
    """A frame with ends that may be those of the partition (None); an end is a distance from the row."""

    unit: str
    start: int | float | None
    end: int | float | None

    @property
    def is_whole(self) -> bool:
        """Whether it is the partition."""
        return self.start is None and self.end is None

    @property
    def looks_to_end(self) -> bool:
        """Whether it is from some row on to the end of the partition."""
        return self.start is not None and self.end is None

    @property
    def reversed(self) -> FrameBounds:
        """The same rows, with the order of the partition reversed."""
        start, end = (None if each is None else -each for each in (self.end, self.start))
        return FrameBounds(self.unit, start, end)

    @property
    def frame(self) -> Frame:
        """As the plan knows it. RANGE with no distance but zero is about rows with equal order values."""
        assert self.end is not None
        if self.unit == "rows":
            return Frame("rows", self.start, self.end)
        unit_is_range = bool(self.start) or bool(self.end)
        return Frame("range", self.start, self.end) if unit_is_range else Frame("groups", self.start, 0)


WHOLE = FrameBounds("rows", None, None)
TO_PEERS = FrameBounds("range", None, 0)


def frame_of(window: exp.Window, order: list[pa.DataType]) -> FrameBounds:
    """The frame of a window whose ORDER BY has columns of these types. Raises a `PlanningError`.

    Without words, it is the partition, or with an ORDER BY the rows up to those that are equal in it.
    """
    spec = window.args.get("spec")
    if spec is None:
        return TO_PEERS if order else WHOLE
    if spec.args.get("exclude"):
        raise refuse(window, "EXCLUDE is not supported in a frame", "Spark has no EXCLUDE either")
    unit = str(spec.args.get("kind") or "").lower()
    if unit not in ("rows", "range"):
        raise refuse(window, f"{unit.upper()} frames are not supported", "use ROWS or RANGE")
    ends = [_End.of(spec, name) for name in ("start", "end")]
    if unit == "range" and any(end.distance is not None for end in ends) and len(order) != 1:
        raise InvalidSql(
            f"RANGE with a distance needs one column in ORDER BY, and there are {len(order)}",
            detail=f"in `{text_of(window)}`",
            hint="order by one column, or count rows: ROWS BETWEEN …",
        )
    if unit == "range" and not order:
        raise InvalidSql(
            "RANGE needs an ORDER BY",
            detail=f"in `{text_of(window)}`",
            hint="add ORDER BY, or count rows: ROWS BETWEEN …",
        )
    start, end = (each.value(unit, order, window) for each in ends)
    if start == float("inf") or end == float("-inf") or start > end:
        raise InvalidSql("a frame ends before it starts", detail=f"in `{text_of(window)}`", hint="swap its two ends")
    return FrameBounds(unit, None if start == float("-inf") else start, None if end == float("inf") else end)


@dataclass(frozen=True)
class _End:
    """An end of a frame: unbounded, the row itself (neither), or at a distance; `sign` is −1 before the row."""

    sign: int
    is_unbounded: bool = False
    distance: exp.Expr | None = None

    @classmethod
    def of(cls, spec: exp.Expr, name: str) -> _End:
        value = spec.args.get(name)
        if value is None or value == "CURRENT ROW":  # ROWS 3 PRECEDING ends with the row
            return cls(0)
        sign = -1 if str(spec.args.get(f"{name}_side")).upper() == "PRECEDING" else 1
        return cls(sign, is_unbounded=True) if value == "UNBOUNDED" else cls(sign, distance=value)

    def value(self, unit: str, order: list[pa.DataType], window: exp.Window) -> int | float:
        """How far it is from the row; infinite if it is unbounded. Raises a `PlanningError`."""
        if self.is_unbounded:
            return self.sign * float("inf")
        if self.distance is None:
            return 0
        return self.sign * (
            _rows(self.distance, window) if unit == "rows" else _distance(self.distance, order[0], window)
        )


def constant(node: exp.Expr) -> int | float | None:
    """The number that is written, or made of written ones by + - *; None if it is something else."""
    if isinstance(node, exp.Paren):
        return constant(node.this)
    if type(node) in _FOLDED:
        parts = constant(node.this), constant(node.expression)
        return None if None in parts else _FOLDED[type(node)](*parts)
    if isinstance(node, exp.Neg):
        inner = constant(node.this)
        return None if inner is None else -inner
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    return int(node.this) if node.this.isdigit() else float(node.this)


def _rows(node: exp.Expr, window: exp.Window) -> int:
    number = constant(node)
    if not isinstance(number, int) or abs(number) >= 1 << 31:
        raise InvalidSql(
            "a distance in ROWS must be a constant whole number",
            detail=f"in `{text_of(window)}`",
            hint="as in ROWS BETWEEN 3 PRECEDING AND CURRENT ROW; at most 2147483647, beyond that write UNBOUNDED",
        )
    return number


def _distance(node: exp.Expr, order: pa.DataType, window: exp.Window) -> int | float:
    interval = interval_of(node)
    if spark_types.is_datetime(order):
        days = constant(node) if pa.types.is_date(order) and interval is None else None
        if isinstance(days, int):
            return days
        if interval is None:
            raise mismatch(window, "RANGE over a time needs an interval", "as in RANGE INTERVAL 1 HOUR PRECEDING")
        if interval.months:
            raise refuse(window, "RANGE with months or years is not supported", "use days, hours or seconds")
        if not pa.types.is_date(order):
            return interval.micros
        if interval.micros % _DAY:
            raise mismatch(window, "RANGE over a date needs whole days", "CAST the date to TIMESTAMP")
        return interval.micros // _DAY
    number = constant(node)
    if number is None or interval is not None:
        raise InvalidSql(
            "a distance in RANGE must be a constant number",
            detail=f"in `{text_of(window)}`",
            hint="as in RANGE BETWEEN 10 PRECEDING AND CURRENT ROW",
        )
    if spark_types.is_integer(order) and isinstance(number, int):
        return number
    if pa.types.is_floating(order):
        return float(number)
    raise mismatch(
        window,
        f"RANGE with a distance over {spark_types.spark_name(order)} is not supported",
        "order by an integer, a DOUBLE, a date or a timestamp",
    )

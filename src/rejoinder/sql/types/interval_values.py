"""Intervals as values: what `+`, `-`, `*`, `/` and EXTRACT make of them.

DuckDB counts them: INTERVAL DAY TO SECOND in microseconds, INTERVAL YEAR TO MONTH in months, and the calendar interval
of `make_interval` in months, days and microseconds. Only INTERVAL DAY TO SECOND can be the type of a column.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast, coerce
from rejoinder.sql.types.flow_zone import Part, changed, local, moved
from rejoinder.sql.types.terms import Term, call, mismatch, refuse

_DAY_PARTS = {"DAY": spark_types.INT, "HOUR": spark_types.TINYINT, "MINUTE": spark_types.TINYINT}
_MONTH_PARTS = {"YEAR": spark_types.INT, "MONTH": spark_types.TINYINT}


def has_interval(left: Term, right: Term) -> bool:
    """Whether an operand is an interval."""
    return spark_types.is_interval(left.type) or spark_types.is_interval(right.type)


def calculate(sign: str, left: Term, right: Term, node: exp.Expr) -> Term:
    """Calculate with an interval: with a time, with another interval of its type, or with a number."""
    if not spark_types.is_interval(right.type) and sign in "+*":
        left, right = right, left
    if sign in "+-" and left.type == right.type != spark_types.CALENDAR:
        return call(sign, left.type, left, right, nulls="propagated", can_fail=True)
    if sign in "+-" and spark_types.is_datetime(left.type):
        return _moved(sign, left, right, node)
    if sign == "*" and spark_types.is_integer(left.type) and right.type != spark_types.CALENDAR:
        number = cast(left, _counted(right.type), node)
        return call("*", right.type, right, number, nulls="propagated", can_fail=True)
    if sign == "/" and spark_types.is_integer(right.type) and left.type != spark_types.CALENDAR:
        number = cast(right, spark_types.BIGINT, node)
        return call("divide_interval", left.type, left, number, nulls="propagated", can_fail=True)
    names = f"{spark_types.spark_name(left.type)} and {spark_types.spark_name(right.type)}"
    raise mismatch(
        node, f"`{sign}` of {names} is not supported", "add an interval to a time, or CAST a number to BIGINT"
    )


def _counted(kind: pa.DataType) -> pa.DataType:
    return spark_types.INT if kind == spark_types.YEAR_MONTH else spark_types.BIGINT


def _moved(sign: str, time: Term, interval: Term, node: exp.Expr) -> Term:
    """A time moved by an interval. A date moved by microseconds becomes a TIMESTAMP."""
    if time.type == spark_types.DATE and interval.type == spark_types.DAY_TIME:
        time = coerce(time, spark_types.TIMESTAMP, node)
    names = {spark_types.DAY_TIME: "microseconds", spark_types.YEAR_MONTH: "months", spark_types.CALENDAR: "calendar"}
    name = "move_by_interval"

    def move(start: Term, part: Part) -> Term:
        options = (names[interval.type], sign) if part == "all" else (names[interval.type], sign, part)
        return call(name, start.type, start, interval, options=options, nulls="propagated", can_fail=True)

    if interval.type == spark_types.YEAR_MONTH:
        return changed(time, lambda start: move(start, "all"))
    return moved(time, move)


def difference(left: Term, right: Term, node: exp.Expr) -> Term:
    """The time from one to another, as INTERVAL DAY TO SECOND."""
    times = [local(coerce(term, spark_types.TIMESTAMP, node)) for term in (left, right)]
    return call("time_difference", spark_types.DAY_TIME, *times, nulls="propagated", can_fail=True)


def part_of_interval(interval: Term, part: str, node: exp.Expr) -> Term:
    """Compile EXTRACT from an interval."""
    parts = _DAY_PARTS if interval.type == spark_types.DAY_TIME else _MONTH_PARTS
    if part == "SECOND" and interval.type == spark_types.DAY_TIME:
        return call("part_of_interval", pa.decimal128(8, 6), interval, options=(part,), nulls="propagated")
    if part not in parts:
        known = ", ".join((*parts, "SECOND") if parts is _DAY_PARTS else parts)
        raise refuse(node, f"an interval has no `{part}`", f"one of {known}")
    return call("part_of_interval", parts[part], interval, options=(part,), nulls="propagated")

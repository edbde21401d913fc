"""INTERVAL literals, and their sum with dates and timestamps.

An interval is either of months or of microseconds, as in ANSI SQL. No column can hold it: it stands beside `+` and `-`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from rejoinder import errors
from rejoinder.ir.expressions.monotone import Step
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.flow_zone import Part, changed, moved
from rejoinder.sql.types.terms import Term, call, mismatch, refuse

MONTHS = {"MONTH": 1, "YEAR": 12}
MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_WORD = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]*)?)\s+([A-Za-z]+)")
_SPANS = {
    ("YEAR", "MONTH"): re.compile(r"([+-])?([0-9]+)-([0-9]{1,2})$"),
    ("DAY", "HOUR"): re.compile(r"([+-])?([0-9]+) ([0-9]{1,2})$"),
    ("DAY", "MINUTE"): re.compile(r"([+-])?([0-9]+) ([0-9]{1,2}):([0-9]{1,2})$"),
    ("DAY", "SECOND"): re.compile(r"([+-])?([0-9]+) ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2}(?:\.[0-9]{1,6})?)$"),
    ("HOUR", "MINUTE"): re.compile(r"([+-])?([0-9]+):([0-9]{1,2})$"),
    ("HOUR", "SECOND"): re.compile(r"([+-])?([0-9]+):([0-9]{1,2}):([0-9]{1,2}(?:\.[0-9]{1,6})?)$"),
    ("MINUTE", "SECOND"): re.compile(r"([+-])?([0-9]+):([0-9]{1,2}(?:\.[0-9]{1,6})?)$"),
}
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


@dataclass(frozen=True)
class Interval:
    """Months or microseconds; `of_days` says that it was written in days and weeks alone."""

    months: int = 0
    micros: int = 0
    of_days: bool = True

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.micros, self.of_days)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.months + other.months, self.micros + other.micros, self.of_days and other.of_days)


def interval_of(node: exp.Expr) -> Interval | None:
    """Read an interval literal, also one of several units; None if the node is something else."""
    if isinstance(node, exp.Paren):
        return interval_of(node.this)
    if isinstance(node, exp.Add):
        right = interval_of(node.expression)  # first: of a long sum the left side is long
        left = None if right is None else interval_of(node.this)
        if left is None or right is None:
            return None
        if bool(left.months) != bool(right.months):
            raise mismatch(node, "an interval is of months or of seconds, not of both", "add them one after the other")
        return left + right
    return _read(node) if isinstance(node, exp.Interval) else None


def read_interval(text: str) -> Interval:
    """Read an interval; a plain number counts microseconds.

    >>> read_interval("INTERVAL 24 hours").micros == read_interval("INTERVAL 1 day").micros, read_interval("-3").micros
    (True, -3)
    """
    if text.removeprefix("-").isdigit():
        return Interval(micros=int(text))
    try:
        node = sqlglot.parse_one(text, read=SparkSql)
        is_word = isinstance(node, exp.Interval) and not isinstance(node.this, exp.Literal)
        interval = None if is_word else interval_of(node)
    except SqlglotError:
        interval = None
    if interval is None:
        raise errors.InvalidSql(f"`{text}` is not a length of time", hint="as in INTERVAL 5 MINUTES")
    return interval


def _read(node: exp.Interval) -> Interval:
    value, unit = node.this, node.args.get("unit")
    if not isinstance(value, exp.Literal):
        raise refuse(
            node,
            "an interval must be a literal",
            "use timestampadd(unit, amount, time), or make the time in the source",
        )
    if isinstance(unit, exp.IntervalSpan):
        return _read_span(value.this, unit.this.name.upper(), unit.expression.name.upper(), node)
    if unit is not None:
        return _in_unit(value.this, unit.name, node)
    total, position = Interval(), 0
    for match in _WORD.finditer(value.this):
        if match.start() != position:
            break
        total, position = total + _in_unit(match.group(1), match.group(2), node), match.end()
    if not position or value.this[position:].strip():
        raise _unreadable(node)
    if total.months and total.micros:
        raise mismatch(node, "an interval is of months or of seconds, not of both")
    return total


def _in_unit(text: str, unit: str, node: exp.Expr) -> Interval:
    name = unit.upper().removesuffix("S")
    try:
        amount = Decimal(text.strip())
    except InvalidOperation:
        raise _unreadable(node) from None
    if name == "SECOND":
        micros = amount * MICROS[name]
        if micros != micros.to_integral_value():
            raise refuse(node, "an interval finer than microseconds is not supported")
        return Interval(micros=int(micros), of_days=False)
    if amount != amount.to_integral_value() or "." in text:
        raise _unreadable(node)
    if name in MONTHS:
        return Interval(months=int(amount) * MONTHS[name])
    if name in MICROS:
        return Interval(micros=int(amount) * MICROS[name], of_days=name in ("DAY", "WEEK"))
    raise refuse(
        node, f"an interval in `{unit}` is not supported", "use year, month, week, day, hour, minute or second"
    )


def _read_span(text: str, first: str, last: str, node: exp.Expr) -> Interval:
    pattern = _SPANS.get((first, last))
    match = pattern.match(text.strip()) if pattern else None
    if match is None:
        raise _unreadable(node)
    sign, *amounts = match.groups()
    units = _UNITS[_UNITS.index(first) : _UNITS.index(last) + 1]
    total = Interval()
    for amount, unit in zip(amounts, units, strict=True):
        total += _in_unit(amount, unit, node)
    limits = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}
    if any(Decimal(amount) >= limits[unit] + 1 for amount, unit in zip(amounts[1:], units[1:], strict=True)):
        raise _unreadable(node)
    return -total if sign == "-" else total


def _unreadable(node: exp.Expr) -> errors.InvalidSql:
    return errors.InvalidSql(
        f"`{text_of(node)}` is not an interval that can be read",
        hint="write it as INTERVAL '5' DAY or INTERVAL 5 DAYS",
    )


def shift(term: Term, interval: Interval, node: exp.Expr) -> Term:
    """Add an interval to a date or a timestamp. A DATE stays a DATE if it moves by days or months."""
    if not spark_types.is_datetime(term.type):
        raise mismatch(
            node, f"an interval cannot be added to {spark_types.spark_name(term.type)}", "CAST it to TIMESTAMP before"
        )
    if term.type == spark_types.DATE and not (interval.months or interval.of_days):
        term = coerce(term, spark_types.TIMESTAMP, node)
    if interval.months:
        return changed(term, lambda start: _added(start, "months", interval.months))
    if term.type == spark_types.DATE:
        return _added(term, "days", interval.micros // MICROS["DAY"])
    days = part_of(interval.micros, "days")
    if not days:
        return _added(term, "microseconds", interval.micros)
    return moved(term, lambda start, part: _added(start, "microseconds", part_of(interval.micros, part)), (days, days))


def _added(term: Term, unit: str, amount: int) -> Term:
    monotone = None if unit == "months" else MonotoneArgument(0, (Step(amount),))
    return call("add_interval", term.type, term, options=(unit, amount), can_fail=True, monotone=monotone)


def part_of(micros: int, part: Part) -> int:
    """Return the whole days of an interval, the rest, or all of it, in microseconds.

    >>> part_of(-90_000_000_000, "days") // 1_000_000, part_of(-90_000_000_000, "rest") // 1_000_000
    (-86400, -3600)
    """
    rest = abs(micros) % MICROS["DAY"] * (-1 if micros < 0 else 1)
    return {"all": micros, "days": micros - rest, "rest": rest}[part]


def add_days(day: Term, days: Term, node: exp.Expr, *, sign: int = 1) -> Term:
    """Add a number of days to a date, or subtract it."""
    if not (spark_types.is_integer(days.type) or days.is_null) or days.type == spark_types.BIGINT:
        raise mismatch(node, f"days must be an int, not {spark_types.spark_name(days.type)}", "CAST it to INT")
    amount = coerce(days, spark_types.INT, node)
    monotone = MonotoneArgument(0, (Step(sign * amount.value),)) if amount.value is not None else None
    if sign < 0:
        amount = call("negative", spark_types.INT, amount, can_fail=True)
    return call("date_add", spark_types.DATE, day, amount, can_fail=True, monotone=monotone)

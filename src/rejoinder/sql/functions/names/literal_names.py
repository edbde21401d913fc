"""How Spark writes literals in a generated name: numbers as Java does, dates and intervals in one form each."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

import numpy as np
from sqlglot import exp

from rejoinder.kernels.zones.zone_offsets import local_of
from rejoinder.sql.types import datetime_literals
from rejoinder.sql.types.flow_zone import flow_zone
from rejoinder.sql.types.interval_literals import MICROS, interval_of

_FIELDS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_FIELD_OF_UNIT = {"WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND"}
_PLAIN_FROM, _PLAIN_TO = 1e-3, 1e7
"""Java writes other doubles with an exponent."""


def number_name(text: str, *, negative: bool = False) -> str:
    """Spark's text of a number without a suffix.

    >>> number_name("012.50"), number_name("1e3"), number_name("5", negative=True), number_name("1e10")
    ('12.50', '1000.0', '-5', '1.0E10')
    """
    if "e" in text.lower():
        return _double_name(-float(text) if negative else float(text))
    value = Decimal(text)
    return str(-value if negative and value else value)


def suffixed_name(text: str, kind: exp.DType, *, negative: bool = False) -> str:
    """Spark's text of a number with a suffix, such as `1L` or `1.5D`.

    >>> suffixed_name("1", exp.DType.DOUBLE), suffixed_name("1", exp.DType.BIGINT, negative=True)
    ('1.0', '-1')
    """
    if kind not in (exp.DType.DOUBLE, exp.DType.FLOAT):
        return number_name(text, negative=negative)
    value = float(str(np.float32(text))) if kind == exp.DType.FLOAT else float(text)
    return _double_name(-value if negative else value)


def _double_name(value: float) -> str:
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if value == 0:
        return f"{'-' * sign}0.0"
    if _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else f"{text}.0"
    first, rest = str(digits[0]), "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{first}.{rest}E{int(exponent) + len(digits) - 1}"


def moment_name(text: str, kind: exp.DType) -> str | None:
    """Spark's text of a literal of a date or timestamp; None if it cannot be read.

    >>> moment_name("2020-2-9", exp.DType.DATE), moment_name("2020-01-01 1:2", exp.DType.TIMESTAMPNTZ)
    ("DATE '2020-02-09'", "TIMESTAMP_NTZ '2020-01-01 01:02:00'")
    """
    if kind == exp.DType.DATE:
        day = datetime_literals.parse_date(text)
        return None if day is None else f"DATE '{day.isoformat()}'"
    if kind == exp.DType.TIME:
        clock = datetime_literals.parse_time(text)
        return None if clock is None else f"TIME '{_moment_text(datetime.combine(datetime(1970, 1, 1), clock))[11:]}'"
    if kind not in (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ):
        return None
    is_plain = kind == exp.DType.TIMESTAMPNTZ
    moment = datetime_literals.parse_timestamp(text, zoned=not is_plain, zone=flow_zone())
    if moment is None:
        return None
    return f"TIMESTAMP{'_NTZ' * is_plain} '{_moment_text(moment if is_plain else local_of(moment, flow_zone()))}'"


def _moment_text(moment: datetime) -> str:
    text = moment.replace(microsecond=0).isoformat(sep=" ")
    return f"{text}.{moment.microsecond:06}".rstrip("0") if moment.microsecond else text


def is_of_days(node: exp.Expr) -> bool:
    """Whether an interval has days alone, so that its sum with a date is a date."""
    return _fields(node) == {"DAY"}


def interval_name(node: exp.Expr) -> str | None:
    """Spark's text of an interval literal; None if it has a form of its own. Raises a `PlanningError`.

    >>> import sqlglot
    >>> interval_name(sqlglot.parse_one("INTERVAL '5' HOUR")), interval_name(sqlglot.parse_one("INTERVAL '2' WEEK"))
    ("INTERVAL '05' HOUR", "INTERVAL '14' DAY")
    """
    interval, fields = interval_of(node), _fields(node)
    if interval is None or not fields or not fields <= set(_FIELDS):
        return None
    places = sorted(map(_FIELDS.index, fields))
    named = _FIELDS[places[0] : places[-1] + 1]
    amount = interval.months if "YEAR" in named or "MONTH" in named else interval.micros
    text = ("-" if amount < 0 else "") + (
        _months_text(abs(amount), named) if named[-1] in ("YEAR", "MONTH") else _time_text(abs(amount), named)
    )
    return f"INTERVAL '{text}' {named[0]}" + (f" TO {named[-1]}" if len(named) > 1 else "")


def _fields(node: exp.Expr) -> set[str]:
    """The fields that an interval is written in."""
    if isinstance(node, exp.Paren):
        return _fields(node.this)
    if isinstance(node, exp.Add):
        return _fields(node.this) | _fields(node.expression)
    unit = node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        return {unit.this.name.upper(), unit.expression.name.upper()}
    words = re.findall(r"[A-Za-z]+", node.this.name) if unit is None else [unit.name]
    units = [word.upper().removesuffix("S") for word in words]
    return {_FIELD_OF_UNIT.get(each, each) for each in units}


def _months_text(months: int, fields: tuple[str, ...]) -> str:
    if len(fields) > 1:
        return f"{months // 12}-{months % 12}"
    return str(months // 12 if fields == ("YEAR",) else months)


def _time_text(micros: int, fields: tuple[str, ...]) -> str:
    text = ""
    for field in fields:
        amount, micros = divmod(micros, MICROS[field])
        separator = "" if not text else " " if text.isdigit() and fields[0] == "DAY" and field == "HOUR" else ":"
        text += separator + (str(amount) if field == "DAY" else f"{amount:02}")
    return f"{text}.{micros:06}".rstrip("0") if micros and fields[-1] == "SECOND" else text

"""Intervals, which are counted: microseconds, months, or a struct of months, days and microseconds."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing
from rejoinder.kernels.duckdb.functions.time.time_functions import part_of_micros

_DAY = 86_400_000_000
_OVERFLOW = failing("an interval is too large")
_SIZES = {"HOUR": (3_600_000_000, 24), "MINUTE": (60_000_000, 60)}


def _clock(first: int) -> str:
    """Hours, minutes and seconds from a place on, in microseconds."""
    hours, minutes, seconds = (f"{{{first + place}}}" for place in range(3))
    return (
        f"CAST({hours} AS HUGEINT) * 3600000000 + CAST({minutes} AS HUGEINT) * 60000000 "
        f"+ CAST(CAST({seconds} AS DECIMAL(38,6)) * 1000000 AS HUGEINT)"
    )


def _within(number: str, kind: str, otherwise: str) -> str:
    limit = {"BIGINT": 1 << 63, "INTEGER": 1 << 31}[kind]
    name, with_name = bound(number)
    fits = f"{name} BETWEEN -{limit}::HUGEINT AND {limit - 1}::HUGEINT"
    return with_name(f"CASE WHEN {fits} THEN CAST({name} AS {kind}) WHEN {name} IS NOT NULL THEN {otherwise} END")


def _calendar(otherwise: str) -> str:
    months = "(CAST({0} AS HUGEINT) * 12 + {1})"
    days = "(CAST({2} AS HUGEINT) * 7 + {3})"
    limit = 1 << 31
    fits = " AND ".join(f"{part} BETWEEN -{limit}::HUGEINT AND {limit - 1}::HUGEINT" for part in (months, days))
    fields = (("months", months, "INTEGER"), ("days", days, "INTEGER"), ("micros", f"({_clock(4)})", "BIGINT"))
    struct = ", ".join(f"'{name}': CAST({value} AS {kind})" for name, value, kind in fields)
    present = " AND ".join(f"{{{place}}} IS NOT NULL" for place in range(7))
    return f"CASE WHEN {present} THEN CASE WHEN {fits} THEN {{{struct}}} ELSE {otherwise} END END"


def _moved(call: Call) -> str:
    unit, sign, *part = call.operation.options
    is_date = pa.types.is_date(call.type)
    if unit == "microseconds":
        amount = part_of_micros("{1}", str(part[0])) if part else "{1}"
        return f"({{0}} {sign} to_microseconds({amount}))"
    if unit == "months":
        moved = f"({{0}} {sign} to_months({{1}}))"
        return f"CAST({moved} AS DATE)" if is_date else moved
    months, days, micros = (f"struct_extract({{1}}, '{name}')" for name in ("months", "days", "micros"))
    moved = f"({{0}} {sign} to_months({months}) {sign} to_days({days}))"
    if part:
        return moved if part == ["days"] else f"({{0}} {sign} to_microseconds({micros}))"
    if not is_date:
        return f"({moved} {sign} to_microseconds({micros}))"
    wrong = failing("an interval with hours, minutes or seconds cannot be added to a date")
    return f"CASE WHEN {micros} <> 0 THEN {wrong} ELSE CAST({moved} AS DATE) END"


def _divided(call: Call) -> str:
    """Half is rounded away from zero."""
    kind = "INTEGER" if call.type.unit == "s" else "BIGINT"
    number, with_number = bound("CAST({0} AS HUGEINT)")
    twice = f"(abs({number} % {{1}}) * 2 >= abs(CAST({{1}} AS HUGEINT)))"
    sign = f"CASE WHEN ({number} < 0) = ({{1}} < 0) THEN 1 ELSE -1 END"
    rounded = f"({number} // {{1}} + CASE WHEN {twice} THEN {sign} ELSE 0 END)"
    zero = failing("division by zero")
    return with_number(
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {{1}} = 0 THEN {zero} ELSE {_within(rounded, kind, _OVERFLOW)} END"
    )


def _part(call: Call) -> str:
    (part,) = call.operation.options
    if part == "SECOND":
        return "CAST(CAST({0} % 60000000 AS DECIMAL(8,0)) * CAST('0.000001' AS DECIMAL(6,6)) AS DECIMAL(8,6))"
    if part == "DAY":
        return f"CAST({{0}} // {_DAY} AS INTEGER)"
    if part in ("YEAR", "MONTH"):
        return "CAST({0} // 12 AS INTEGER)" if part == "YEAR" else "CAST({0} % 12 AS TINYINT)"
    size, many = _SIZES[str(part)]
    return f"CAST({{0}} // {size} % {many} AS TINYINT)"


RENDERINGS: dict[str, Rendering] = {
    "divide_interval": _divided,
    "make_dt_interval": _within(f"(CAST({{0}} AS HUGEINT) * {_DAY} + {_clock(1)})", "BIGINT", _OVERFLOW),
    "make_interval": _calendar(_OVERFLOW),
    "make_ym_interval": _within("(CAST({0} AS HUGEINT) * 12 + {1})", "INTEGER", _OVERFLOW),
    "move_by_interval": _moved,
    "part_of_interval": _part,
    "time_difference": "(epoch_us({0}) - epoch_us({1}))",
    "try_make_interval": _calendar("NULL"),
}

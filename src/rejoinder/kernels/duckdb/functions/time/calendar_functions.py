"""More functions on dates and timestamps."""

from __future__ import annotations

from collections.abc import Callable

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing

_FAR = failing("years are supported from 1 to 9999")
_CLOCK = "{3} BETWEEN 0 AND 23 AND {4} BETWEEN 0 AND 59 AND ({5} BETWEEN 0 AND 59.999999 OR {5} = 60)"
_DAY = "{1} BETWEEN 1 AND 12 AND {2} BETWEEN 1 AND 31"
_FIRST = "make_date({0}, {1}, 1)"
_SECONDS = "CAST({3} AS BIGINT) * 3600 + {4} * 60"
_MICROS = f"({_SECONDS}) * 1000000 + CAST({{5}} * 1000000 AS BIGINT)"
_MOMENT = f"(CAST({_FIRST} + ({{2}} - 1) AS TIMESTAMP) + to_microseconds({_MICROS}))"


def _made(wrong: str) -> Callable[[Call], str]:
    def rendering(call: Call) -> str:
        present = " AND ".join(f"{{{place}}} IS NOT NULL" for place in range(6))
        made = f"CASE WHEN {{2}} <= day(last_day({_FIRST})) THEN {_MOMENT} ELSE {wrong} END"
        checked = f"CASE WHEN {_CLOCK} AND {_DAY} THEN {made} ELSE {wrong} END"
        near = f"CASE WHEN {{0}} BETWEEN 1 AND 9999 THEN {checked} ELSE {_FAR} END"
        return f"CASE WHEN {present} THEN {near} END"

    return rendering


def _next_day(call: Call) -> str:
    (number,) = call.operation.options
    return f"({{0}} + CAST(7 - (isodow({{0}}) - {number} + 7) % 7 AS INTEGER))"


_MONTHS = "CAST((year({0}) - year({1})) * 12 + month({0}) - month({1}) AS DOUBLE)"
_IS_WHOLE = "day({0}) = day({1}) OR (CAST({0} AS DATE) = last_day({0}) AND CAST({1} AS DATE) = last_day({1}))"
_CLOCKS = "(hour({0}) * 3600 + minute({0}) * 60 + second({0}) - hour({1}) * 3600 - minute({1}) * 60 - second({1}))"


def _months_between(call: Call) -> str:
    """With two more arguments, the times since midnight: where clocks change, they differ from what a clock shows."""
    seconds = _CLOCKS if len(call.parts) == 2 else "({2} // 1000000 - {3} // 1000000)"
    rest = f"CAST((day({{0}}) - day({{1}})) * 86400 + {seconds} AS DOUBLE) / CAST(2678400 AS DOUBLE)"
    return f"CASE WHEN {_IS_WHOLE} THEN {_MONTHS} ELSE {_MONTHS} + {rest} END"


RENDERINGS: dict[str, Rendering] = {
    "dayname": "strftime({0}, '%a')",
    "make_timestamp": _made(failing("the numbers are not a date and a time")),
    "monthname": "strftime({0}, '%b')",
    "months_between": _months_between,
    "next_day": _next_day,
    "try_make_timestamp": _made("NULL"),
}

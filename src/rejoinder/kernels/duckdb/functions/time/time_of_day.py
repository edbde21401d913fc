"""Functions on the time of day. The option of a call is a unit in microseconds."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing

_DAY = 86_400_000_000
_WRONG = failing("the numbers are not a time of day")


def _time(micros: str) -> str:
    return f"(TIME '00:00:00' + to_microseconds({micros}))"


def _unit(call: Call) -> int:
    return int(call.operation.options[0])


def _truncated(call: Call) -> str:
    micros = "epoch_us({0})"
    return _time(f"{micros} - {micros} % {_unit(call)}")


def _of_number(call: Call) -> str:
    micros, with_micros = bound(f"CAST({{0}} AS DECIMAL(38,6)) * {_unit(call)}")
    fits = f"{micros} >= 0 AND {micros} < {_DAY}"
    return with_micros(
        f"CASE WHEN {fits} THEN {_time(f'CAST({micros} AS BIGINT)')} WHEN {micros} IS NOT NULL THEN {_WRONG} END"
    )


def _number(call: Call) -> str:
    if pa.types.is_decimal(call.type):
        return "CAST(CAST(epoch_us({0}) AS DECIMAL(12,0)) * CAST('0.000001' AS DECIMAL(6,6)) AS DECIMAL(14,6))"
    return f"(epoch_us({{0}}) // {_unit(call)})"


_CLOCK = "{0} BETWEEN 0 AND 23 AND {1} BETWEEN 0 AND 59 AND {2} >= 0 AND {2} < 60"
_MICROS = "CAST({0} AS BIGINT) * 3600000000 + CAST({1} AS BIGINT) * 60000000 + CAST({2} * 1000000 AS BIGINT)"
_PRESENT = "{0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL"

RENDERINGS: dict[str, Rendering] = {
    "make_time": f"CASE WHEN {_PRESENT} THEN CASE WHEN {_CLOCK} THEN {_time(_MICROS)} ELSE {_WRONG} END END",
    "number_of_time": _number,
    "time_diff": lambda call: f"((epoch_us({{1}}) - epoch_us({{0}})) // {_unit(call)})",
    "time_of_number": _of_number,
    "time_of_timestamp": "CAST({0} AS TIME)",
    "time_trunc": _truncated,
}

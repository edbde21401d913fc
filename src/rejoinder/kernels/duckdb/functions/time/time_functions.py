"""Functions on dates and timestamps. Local times are computed before: these functions know no zones."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering

_PARTS = {
    "YEAR": "year({0})",
    "QUARTER": "quarter({0})",
    "MONTH": "month({0})",
    "WEEK": "weekofyear({0})",
    "DAY": "day({0})",
    "DAYOFWEEK": "dayofweek({0}) + 1",
    "DAYOFWEEK_ISO": "isodow({0})",
    "WEEKDAY": "isodow({0}) - 1",
    "DOY": "dayofyear({0})",
    "HOUR": "hour({0})",
    "MINUTE": "minute({0})",
    "SECOND": "second({0})",
}
_NAMED_PARTS = {
    "year": "YEAR",
    "quarter": "QUARTER",
    "month": "MONTH",
    "day": "DAY",
    "dayofweek": "DAYOFWEEK",
    "dayofyear": "DOY",
    "weekofyear": "WEEK",
    "weekday": "WEEKDAY",
    "hour": "HOUR",
    "minute": "MINUTE",
    "second": "SECOND",
}
_DAY = 86_400_000_000
_ADDED = {"months": "to_months({})", "days": "CAST({} AS INTEGER)", "microseconds": "to_microseconds({})"}


def part_of_micros(amount: str, part: str) -> str:
    """The whole days of an amount of microseconds, or the rest; both have its sign."""
    return f"{amount} % {_DAY}" if part == "rest" else f"({amount} - {amount} % {_DAY})"


def _integer(part: str) -> str:
    return f"CAST({_PARTS[part]} AS INTEGER)"


def _extract(call: Call) -> str:
    if pa.types.is_decimal(call.type):
        micros = "CAST(microsecond({0}) AS DECIMAL(8,0)) * CAST('0.000001' AS DECIMAL(6,6))"
        return f"CAST({micros} AS DECIMAL(8,6))"
    return _integer(str(call.operation.options[0]))


def _add_interval(call: Call) -> str:
    unit, amount = call.operation.options
    total = f"{{0}} + {_ADDED[str(unit)].format(amount)}"
    return f"CAST({total} AS DATE)" if pa.types.is_date(call.type) and unit == "months" else f"({total})"


def _timestamp_add(call: Call) -> str:
    unit, size, *part = call.operation.options
    amount = f"CAST({{0}} AS BIGINT) * {size}" if unit == "microseconds" else f"{{0}} * {size}"
    if part:
        amount = part_of_micros(f"({amount})", str(part[0]))
    return f"({{1}} + to_{unit}({amount}))"


def _shift(call: Call) -> str:
    (by,) = call.operation.options
    return f"({{0}} + to_microseconds({by}))" if pa.types.is_timestamp(call.type) else f"({{0}} + {by})"


def _since_epoch(size: int) -> str:
    """Microseconds since 1970 in a larger unit, rounded down: DuckDB's // goes towards zero."""
    micros = "epoch_us({0})"
    return f"(({micros} - ({micros} % {size} + {size}) % {size}) // {size})"


RENDERINGS: dict[str, Rendering] = {
    **{name: _integer(part) for name, part in _NAMED_PARTS.items()},
    "add_interval": _add_interval,
    "add_months": "CAST({0} + to_months({1}) AS DATE)",
    "date_add": "({0} + {1})",
    "date_from_unix_date": "(DATE '1970-01-01' + {0})",
    "date_trunc": lambda call: f"date_trunc('{call.operation.options[0]}', {{0}})",
    "datediff": "CAST({0} - {1} AS INTEGER)",
    "extract": _extract,
    "last_day": "last_day({0})",
    "make_date": "make_date({0}, {1}, {2})",
    "shift": _shift,
    "timestamp_micros": "make_timestamp({0} * 1)",
    "timestamp_millis": "make_timestamp({0} * 1000)",
    "timestamp_seconds": "make_timestamp({0} * 1000000)",
    "timestampadd": _timestamp_add,
    "timestampdiff": lambda call: f"((epoch_us({{1}}) - epoch_us({{0}})) // {call.operation.options[0]})",
    "trunc": lambda call: f"CAST(date_trunc('{call.operation.options[0]}', {{0}}) AS DATE)",
    "unix_date": "CAST({0} - DATE '1970-01-01' AS INTEGER)",
    "unix_micros": "epoch_us({0})",
    "unix_millis": _since_epoch(1_000),
    "unix_seconds": _since_epoch(1_000_000),
    # Before 1970 this goes towards zero, other than UNIX_SECONDS.
    "unix_timestamp": "(epoch_us({0}) // 1000000)",
}

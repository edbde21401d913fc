"""Intervals as text in DuckDB, as Spark writes them."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.kernels.duckdb.functions.templates import bound


def write_interval(kind: pa.DataType) -> str:
    """The text of an interval of a type, which DuckDB counts."""
    if pa.types.is_interval(kind):
        return _calendar()
    number, with_number = bound("abs(CAST({0} AS HUGEINT))")
    sign = "CASE WHEN {0} < 0 THEN '-' ELSE '' END"
    if kind.unit == "s":
        text = f"'INTERVAL ''' || {sign} || ({number} // 12) || '-' || ({number} % 12) || ''' YEAR TO MONTH'"
        return with_number(text)
    clock = _clock(number)
    text = f"'INTERVAL ''' || {sign} || ({number} // 86400000000) || ' ' || {clock} || ''' DAY TO SECOND'"
    return with_number(text)


def _clock(micros: str) -> str:
    hours, minutes = (f"lpad(CAST({micros} // {size} % {many} AS VARCHAR), 2, '0')" for size, many in _UNITS)
    seconds = f"lpad(CAST({micros} // 1000000 % 60 AS VARCHAR), 2, '0')"
    return f"{hours} || ':' || {minutes} || ':' || {seconds} || {_fraction(micros)}"


_UNITS = ((3_600_000_000, 24), (60_000_000, 60))


def _fraction(micros: str) -> str:
    digits = f"rtrim(lpad(CAST({micros} % 1000000 AS VARCHAR), 6, '0'), '0')"
    return f"CASE WHEN {micros} % 1000000 = 0 THEN '' ELSE '.' || {digits} END"


def _calendar() -> str:
    """Months, days and microseconds; parts that are 0 are left out."""
    months, micros = "struct_extract({0}, 'months')", "struct_extract({0}, 'micros')"
    size = f"abs(CAST({micros} AS HUGEINT))"
    parts = [
        _part(f"{months} // 12", "years"),
        _part(f"{months} % 12", "months"),
        _part("struct_extract({0}, 'days')", "days"),
        _part(f"{micros} // 3600000000", "hours"),
        _part(f"{micros} // 60000000 % 60", "minutes"),
    ]
    sign = f"CASE WHEN {micros} < 0 THEN '-' ELSE '' END"
    seconds = f"{sign} || ({size} // 1000000 % 60) || {_fraction(size)} || ' seconds'"
    parts.append(f"CASE WHEN {micros} % 60000000 <> 0 THEN {seconds} END")
    text, with_text = bound(f"concat_ws(' ', {', '.join(parts)})")
    shown = with_text(f"CASE WHEN {text} = '' THEN '0 seconds' ELSE {text} END")
    return f"CASE WHEN {{0}} IS NOT NULL THEN {shown} END"


def _part(number: str, unit: str) -> str:
    return f"CASE WHEN {number} <> 0 THEN ({number}) || ' {unit}' END"

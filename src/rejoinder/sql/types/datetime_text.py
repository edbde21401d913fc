"""Dates and timestamps written as text: the shapes that Spark reads, for literals here and for columns in DuckDB.

Left out, and a failure of the row: years before 1, zones by name other than UTC, and a time without a date, to which
Spark would add today's.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from rejoinder.sql.types.terms import once, quote_text

BLANK = r"[\x00-\x20\x7f]*"
"""What Spark trims before it reads a number or a time."""

_YEAR = r"\+?([0-9]{4,6})"
_DATE = rf"^{BLANK}{_YEAR}(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T](?s:.*))?)?)?{BLANK}$"
_DAY = rf"^{BLANK}{_YEAR}(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}}))?)?{BLANK}$"
_ZONE = r"(?: ?(Z|UTC|[+-][0-9]{1,2}(?::?[0-9]{2,2})?))?"
_CLOCK = rf"([01]?[0-9]|2[0-3])(?::([0-5]?[0-9])(?::([0-5]?[0-9])(?:\.([0-9]{{0,9}}))?{_ZONE})?)?"
_MOMENT = rf"^{BLANK}{_YEAR}-([0-9]{{1,2}})-([0-9]{{1,2}})[ T]{_CLOCK}{BLANK}$"


def parse_date(text: str) -> date | None:
    """Read a date literal, or give None.

    >>> parse_date("2020-2-9")
    datetime.date(2020, 2, 9)
    """
    found = re.match(_DATE, text)
    if found is None:
        return None
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        return date(year, month, day)
    except ValueError:
        return None


def parse_timestamp(text: str, *, zoned: bool) -> datetime | None:
    """Read a timestamp literal as UTC, or give None; a zone in the text is ignored unless `zoned`.

    >>> parse_timestamp("2020-01-01 10:00:00+02:00", zoned=True)
    datetime.datetime(2020, 1, 1, 8, 0)
    """
    found = re.match(_MOMENT, text)
    if found is None:
        day = parse_date(text) if re.match(_DAY, text) else None
        return None if day is None else datetime(day.year, day.month, day.day)
    fraction, zone = found.group(7), found.group(8)
    year, month, day_, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    try:
        moment = datetime(year, month, day_, hour, minute, second, int((fraction or "").ljust(6, "0")[:6]))
        return moment - _offset(zone) if zoned and zone else moment
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> timedelta:
    if zone in ("Z", "UTC"):
        return timedelta()
    hours, minutes = re.match(r"[+-]([0-9]{1,2}):?([0-9]{2})?$", zone).groups()  # type: ignore[union-attr]
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return -offset if zone.startswith("-") else offset


def read_date(sql: str) -> str:
    """Write the DuckDB text that reads a date, NULL if it is none."""
    parts, wrap = once(f"regexp_extract({sql}, {quote_text(_DATE)}, ['y', 'm', 'd'])")
    return wrap(f"TRY_CAST({_dashed(parts)} AS DATE)")


def read_timestamp(sql: str, *, zoned: bool) -> str:
    """Write the DuckDB text that reads a timestamp, NULL if it is none."""
    day, with_day = once(f"regexp_extract({sql}, {quote_text(_DAY)}, ['y', 'm', 'd'])")
    found = f"regexp_extract({sql}, {quote_text(_MOMENT)}, ['y', 'm', 'd', 'h', 'n', 's', 'f', 'z'])"
    parts, with_parts = once(found)
    minutes = f"{parts}.h || ':' || {_or(parts, 'n', '00')}"
    clock = f"{minutes} || ':' || {_or(parts, 's', '00')} || '.' || {_or(parts, 'f', '0')}"
    moment = f"TRY_CAST({_dashed(parts)} || ' ' || {clock} AS TIMESTAMP)"
    if zoned:
        moment = f"({moment} - to_minutes({_minutes(f'{parts}.z')}))"
    moment = with_parts(f"CASE WHEN {parts}.y <> '' THEN {moment} END")
    return with_day(f"CASE WHEN {day}.y <> '' THEN TRY_CAST({_dashed(day)} AS TIMESTAMP) ELSE {moment} END")


def _dashed(parts: str) -> str:
    return f"({parts}.y || '-' || {_or(parts, 'm', '1')} || '-' || {_or(parts, 'd', '1')})"


def _or(parts: str, name: str, default: str) -> str:
    return f"COALESCE(nullif({parts}.{name}, ''), '{default}')"


def _minutes(zone: str) -> str:
    """Write the offset of a zone such as `+2`, `-02:30` or `+0230` in minutes; 0 for no zone."""
    hours = f"TRY_CAST(regexp_extract({zone}, '^[+-]([0-9]{{1,2}})', 1) AS INTEGER)"
    minutes = f"TRY_CAST(regexp_extract({zone}, '^[+-][0-9]{{1,2}}:?([0-9]{{2,2}})$', 1) AS INTEGER)"
    size = f"(COALESCE({hours}, 0) * 60 + COALESCE({minutes}, 0))"
    return f"CASE WHEN starts_with({zone}, '-') THEN -{size} ELSE {size} END"


def write_date(sql: str) -> str:
    """Write the DuckDB text that writes a date as Spark does, with signs around the years 1 to 9999."""
    far = f"{_far(sql)} || strftime({sql}, '-%m-%d')"
    return f"CASE WHEN year({sql}) BETWEEN 1 AND 9999 THEN CAST({sql} AS VARCHAR) ELSE {far} END"


def write_timestamp(sql: str) -> str:
    """Write the DuckDB text that writes a timestamp as Spark does: no zone, no trailing zeros."""
    clock = f"rtrim(rtrim(strftime({sql}, '-%m-%d %H:%M:%S.%f'), '0'), '.')"
    whole = f"strftime({sql}, '-%m-%d %H:%M:%S')"
    far = f"{_far(sql)} || CASE WHEN epoch_us({sql}) % 1000000 = 0 THEN {whole} ELSE {clock} END"
    return f"CASE WHEN year({sql}) BETWEEN 1 AND 9999 THEN CAST({sql} AS VARCHAR) ELSE {far} END"


def _far(sql: str) -> str:
    year = f"CAST(abs(year({sql})) AS VARCHAR)"
    sign = f"CASE WHEN year({sql}) < 0 THEN '-' WHEN year({sql}) > 9999 THEN '+' ELSE '' END"
    return f"{sign} || lpad({year}, greatest(4, length({year}))::INTEGER, '0')"

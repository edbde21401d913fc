"""Literals of dates and timestamps, read in the shapes that Spark reads."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta

from rejoinder.kernels.duckdb.functions.parts.datetime_text import DATE, DAY, MOMENT, TIME
from rejoinder.kernels.zones.zone_offsets import UTC, instant_of


def parse_date(text: str) -> date | None:
    """Read a date literal, or return None.

    >>> parse_date("2020-2-9")
    datetime.date(2020, 2, 9)
    """
    match = re.match(DATE, text)
    if match is None:
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return date(year, month, day)
    except ValueError:
        return None


def parse_timestamp(text: str, *, zoned: bool, zone: str = UTC) -> datetime | None:
    """Read a timestamp literal, or return None; an offset in the text is ignored unless `zoned`.

    The result is in UTC if `zoned`: a text without an offset is then a local time of the zone.

    >>> parse_timestamp("2020-01-01 10:00:00+02:00", zoned=True)
    datetime.datetime(2020, 1, 1, 8, 0)
    """
    match = re.match(MOMENT, text)
    if match is None:
        day = parse_date(text) if re.match(DAY, text) else None
        midnight = None if day is None else datetime(day.year, day.month, day.day)
        return instant_of(midnight, zone) if midnight and zoned else midnight
    fraction, offset = match.group(7), match.group(8)
    year, month, day_, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    try:
        moment = datetime(year, month, day_, hour, minute, second, int((fraction or "").ljust(6, "0")[:6]))
        if zoned:
            return moment - _offset(offset) if offset else instant_of(moment, zone)
        return moment
    except (ValueError, OverflowError):
        return None


def parse_time(text: str) -> time | None:
    """Read the literal of a time of day, or return None.

    >>> parse_time("1:02:03.5 pm")
    datetime.time(13, 2, 3, 500000)
    """
    match = re.match(TIME, text)
    if match is None:
        return None
    fraction, half = (match.group(4) or "").ljust(6, "0")[:6], (match.group(5) or "").lower()
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    if half and not 1 <= hour <= 12:
        return None
    hour = hour % 12 + 12 * (half == "p") if half else hour
    return time(hour, minute, second, int(fraction)) if hour < 24 else None


def _offset(zone: str) -> timedelta:
    if zone in ("Z", "UTC"):
        return timedelta()
    hours, minutes = re.match(r"[+-]([0-9]{1,2}):?([0-9]{2})?$", zone).groups()  # type: ignore[union-attr]
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return -offset if zone.startswith("-") else offset

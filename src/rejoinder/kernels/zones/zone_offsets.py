"""Offsets of time zones from UTC: single times in Python, and the range in which all offsets of a zone are."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

UTC = "UTC"
_OFFSET = re.compile(r"GMT([+-])(\d{2}):(\d{2})")
_HOUR = 3600
_MOST_HOURS = 18
_SAMPLED = timedelta(days=5)
_FIRST, _LAST = datetime(1800, 1, 1), datetime(2100, 1, 1)


@lru_cache(maxsize=1024)
def python_zone(zone: str) -> tzinfo:
    """Return Python's zone for a name that `zone_name` returned."""
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return timezone.utc if zone == UTC else ZoneInfo(zone)
    size = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
    return timezone(-size if offset[1] == "-" else size)


def arrow_zone(zone: str) -> str:
    """Return Arrow's name for a name that `zone_name` returned.

    >>> arrow_zone("Europe/Berlin"), arrow_zone("GMT+05:30")
    ('Europe/Berlin', '+05:30')
    """
    return zone.removeprefix("GMT") if _OFFSET.fullmatch(zone) else zone


def instant_of(local: datetime, zone: str) -> datetime:
    """Return the instant of a local time, both without a zone: the earlier one of two; with the offset before a gap.

    >>> instant_of(datetime(2026, 10, 25, 2, 30), "Europe/Berlin")
    datetime.datetime(2026, 10, 25, 0, 30)
    """
    return local.replace(tzinfo=python_zone(zone)).astimezone(timezone.utc).replace(tzinfo=None)


def local_of(instant: datetime, zone: str) -> datetime:
    """Return the local time of an instant, both without a zone."""
    return instant.replace(tzinfo=timezone.utc).astimezone(python_zone(zone)).replace(tzinfo=None)


@lru_cache(maxsize=1024)
def offset_range(zone: str) -> tuple[int, int]:
    """Return the least and the largest offset of a zone, in microseconds, in whole hours with an hour to spare.

    DuckDB may have a newer version of the rules than Python, hence the spare hour.

    >>> [micros // 3_600_000_000 for micros in offset_range("Europe/Berlin")]
    [-1, 4]
    """
    rules = python_zone(zone)
    if isinstance(rules, timezone):
        micros = rules.utcoffset(None) // timedelta(microseconds=1)
        return micros, micros
    steps = (_LAST - _FIRST) // _SAMPLED
    offsets = {(_FIRST + _SAMPLED * step).replace(tzinfo=rules).utcoffset() for step in range(steps)}
    seconds = [int(offset.total_seconds()) for offset in offsets if offset is not None]
    least = max(min(seconds) // _HOUR - 1, -_MOST_HOURS)
    most = min(-(-max(seconds) // _HOUR) + 1, _MOST_HOURS)
    return least * _HOUR * 1_000_000, most * _HOUR * 1_000_000

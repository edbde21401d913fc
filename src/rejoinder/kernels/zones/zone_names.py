"""Names of time zones, as Java and Spark read them, under the names that DuckDB knows."""

from __future__ import annotations

import re
from functools import lru_cache
from zoneinfo import available_timezones

import pyarrow as pa
import pyarrow.compute as pc

_OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_PREFIXED = re.compile(r"(UTC|GMT|UT)([+-].*)")
_SHORT = """
ACT=Australia/Darwin AET=Australia/Sydney AGT=America/Argentina/Buenos_Aires ART=Africa/Cairo AST=America/Anchorage
BET=America/Sao_Paulo BST=Asia/Dhaka CAT=Africa/Harare CNT=America/St_Johns CST=America/Chicago CTT=Asia/Shanghai
EAT=Africa/Addis_Ababa ECT=Europe/Paris EST=-05:00 HST=-10:00 IET=America/Indiana/Indianapolis IST=Asia/Kolkata
JST=Asia/Tokyo MIT=Pacific/Apia MST=-07:00 NET=Asia/Yerevan NST=Pacific/Auckland PLT=Asia/Karachi PNT=America/Phoenix
PRT=America/Puerto_Rico PST=America/Los_Angeles SST=Pacific/Guadalcanal VST=Asia/Ho_Chi_Minh
"""
_IDS = dict(pair.split("=") for pair in _SHORT.split())
"""Java's short names."""
FARTHEST = 18 * 3600
"""The largest offset of a zone from UTC, in seconds."""


@lru_cache(maxsize=4096)
def zone_name(text: str) -> str | None:
    """Return DuckDB's name of a zone; None if Spark knows no such zone. Names are case-sensitive, as in Java.

    >>> zone_name("Europe/Berlin"), zone_name("+1:00"), zone_name("UTC+05:30"), zone_name("Mars/Olympus")
    ('Europe/Berlin', 'GMT+01:00', 'GMT+05:30', None)
    """
    text = _IDS.get(text, text)
    if text in ("Z", "UTC", "GMT", "UT"):
        return "UTC"
    prefixed = _PREFIXED.fullmatch(text)
    offset = _OFFSET.fullmatch(prefixed[2] if prefixed else text)
    if offset is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        total = hours * 3600 + minutes * 60 + seconds
        if minutes > 59 or seconds or total > FARTHEST:
            return None
        return f"GMT{offset[1]}{hours:02}:{minutes:02}" if total else "UTC"
    return text if text in _regions() else None


def zone_names(texts: pa.ChunkedArray) -> pa.Array:
    """Return DuckDB's name of each zone, NULL if there is none. Cost: a look at each different name."""
    encoded = texts.combine_chunks().dictionary_encode()
    names = [zone_name(text) for text in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(names, pa.string()), encoded.indices)


@lru_cache(maxsize=1)
def _regions() -> frozenset[str]:
    return frozenset(name for name in available_timezones() if not name.startswith(("posix/", "right/", "localtime")))

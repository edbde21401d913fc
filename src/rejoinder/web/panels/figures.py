"""Numbers, sizes, durations and times as short text."""

from __future__ import annotations

from datetime import datetime, timezone


def count(number: float) -> str:
    """Format a count.

    >>> count(999), count(12_345), count(4_200_000)
    ('999', '12.3 k', '4.2 M')
    """
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if number >= factor:
            return f"{number / (1000 if unit == ' k' else factor):.1f}{unit}"
    return f"{number:,.0f}"


def duration(milliseconds: float) -> str:
    """Format a duration.

    >>> duration(4), duration(2300), duration(130_000), duration(7_500_000)
    ('4 ms', '2.3 s', '2 min', '2 h')
    """
    for factor, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min")):
        if milliseconds >= 2 * factor:
            return f"{milliseconds / factor:.0f} {unit}"
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.0f} ms"


def clock(milliseconds: int) -> str:
    """Format a time in UTC.

    >>> clock(0)
    '1970-01-01 00:00:00'
    """
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")

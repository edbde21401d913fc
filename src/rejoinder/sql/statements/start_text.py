"""The text of STARTING AT: from where a view reads incomplete sources."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from rejoinder.errors import InvalidSql

NOW = "NOW"
_EPOCH = re.compile(r"(?:EPOCH\s+)?(\d+)", re.IGNORECASE)
_TIME = re.compile(r"(?:TIMESTAMP\s*)?'([^']*)'", re.IGNORECASE)


def checked_start(text: str) -> str:
    """Normalize a start to `NOW`, `EPOCH n` or `TIMESTAMP '…'`. Raises `InvalidSql`.

    >>> checked_start("now"), checked_start("12"), checked_start("timestamp '2026-01-31'")
    ('NOW', 'EPOCH 12', "TIMESTAMP '2026-01-31 00:00:00'")
    """
    words = text.strip()
    if re.fullmatch(r"NOW(\s*\(\s*\))?", words, re.IGNORECASE):
        return NOW
    epoch, time = _EPOCH.fullmatch(words), _TIME.fullmatch(words)
    if epoch is not None:
        return f"EPOCH {int(epoch[1])}"
    if time is not None:
        try:
            return _written(datetime.fromisoformat(time[1].strip()))
        except ValueError:
            pass
    raise InvalidSql(
        f"STARTING AT `{words}` is not a start",
        hint="use NOW, an epoch such as EPOCH 12, or a time such as TIMESTAMP '2026-01-31 00:00:00'",
    )


def start_of(value: str | int | datetime) -> str:
    """Return the start for a Python value: "now", the number of an epoch, or a time (UTC if it has no zone)."""
    if isinstance(value, datetime):
        return _written(value)
    return checked_start(str(value))


def epoch_of(start: str) -> int | None:
    """Return the epoch of a start; None if it is not an epoch."""
    match = _EPOCH.fullmatch(start)
    return None if match is None else int(match[1])


def micros_of(start: str) -> int:
    """Return the time of a start, in microseconds since 1970 (UTC)."""
    match = _TIME.fullmatch(start)
    assert match is not None, "callers ask only for starts that are times"
    return round(datetime.fromisoformat(match[1]).replace(tzinfo=timezone.utc).timestamp() * 1_000_000)


def _written(time: datetime) -> str:
    plain = time if time.tzinfo is None else time.astimezone(timezone.utc).replace(tzinfo=None)
    return f"TIMESTAMP '{plain}'"

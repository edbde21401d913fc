"""Plain Python data as text, and back: the states of the user's aggregates. No code is stored, and none is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

_READERS: dict[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "decimal": Decimal,
    "dict": lambda pairs: {_read(key): _read(value) for key, value in pairs},
    "fraction": Fraction,
    "set": lambda values: {_read(value) for value in values},
    "timedelta": lambda parts: timedelta(*parts),
    "tuple": lambda values: tuple(_read(value) for value in values),
}


def to_text(value: Any) -> str:
    """Return the text of plain data. Raises `TypeError` for anything else.

    >>> to_text({"n": 2, "days": {date(2026, 1, 2)}})
    '{"dict": [["n", 2], ["days", {"set": [{"date": "2026-01-02"}]}]]}'
    """
    return json.dumps(_plain(value))


def from_text(text: str) -> Any:
    """Return the data of a text.

    >>> from_text(to_text([1, 2.5, None, (Decimal("0.10"), b"x")]))
    [1, 2.5, None, (Decimal('0.10'), b'x')]
    """
    return _read(json.loads(text))


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case Integral():
            return int(value)
        case list():
            return [_plain(each) for each in value]
        case bytes() | bytearray():
            return {"bytes": value.hex()}
        case datetime() | date():
            return {"datetime" if isinstance(value, datetime) else "date": value.isoformat()}
        case timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        case Decimal() | Fraction():
            return {type(value).__name__.lower(): str(value)}
        case Real():
            return float(value)
        case tuple():
            return {"tuple": [_plain(each) for each in value]}
        case set() | frozenset():
            return {"set": sorted((_plain(each) for each in value), key=json.dumps)}
        case dict():
            return {"dict": [[_plain(key), _plain(each)] for key, each in value.items()]}
    raise TypeError(f"a {type(value).__name__}")


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(each) for each in value]
    if isinstance(value, dict):
        ((kind, inner),) = value.items()
        return _READERS[kind](inner)
    return value

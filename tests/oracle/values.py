"""The types that random schemas are made of, in families that join with each other, and their awkward values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Kind:
    """A SQL type, its family, and the values that tests use: few, so that keys meet, and the awkward ones."""

    sql: str
    family: str
    values: tuple[Any, ...]


def _integers(bits: int) -> tuple[int, ...]:
    return (0, 1, 2, 3, -1, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


_DECIMALS = (Decimal("0.00"), Decimal("1.00"), Decimal("1.25"), Decimal("-7.50"))
_MOMENTS = (
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 2, 29),
    datetime(2024, 2, 29, 12, 30),
    datetime(9999, 12, 31),
)
_FLOATS = (0.0, -0.0, 1.5, math.nan, math.inf, -math.inf)

KINDS = (
    Kind("TINYINT", "integer", _integers(8)),
    Kind("SMALLINT", "integer", _integers(16)),
    Kind("INT", "integer", _integers(32)),
    Kind("BIGINT", "integer", (*_integers(64), 2**53, 2**53 + 1)),
    Kind("FLOAT", "float", (*_FLOATS, 0.25)),
    Kind("DOUBLE", "float", (*_FLOATS, 0.1, 1e300)),
    Kind("DECIMAL(10,2)", "decimal", _DECIMALS),
    Kind("DECIMAL(20,4)", "decimal", (*_DECIMALS, Decimal("1.2500"), Decimal("1234567890123456.0001"))),
    Kind("STRING", "text", ("", "a", "b", "ab", "ä", "eight___", "nine____x", 'it\'s a "longer" text', "NULL")),
    Kind("DATE", "date", (date(1, 1, 1), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31))),
    Kind("TIMESTAMP", "time", _MOMENTS),
    Kind("TIMESTAMP_NTZ", "time", _MOMENTS),
    Kind("BOOLEAN", "truth", (False, True)),
)
FAMILIES = tuple(dict.fromkeys(kind.family for kind in KINDS))
BINARY = Kind("BINARY", "bytes", (b"", b"\x00", b"\x00\x00", b"abc", bytes(range(17))))
LIST = Kind("ARRAY<DOUBLE>", "list", ([], [0.0], [-0.0, None], [None], [math.nan, 1.5]))
STRUCT = Kind("STRUCT<a: INT, b: STRING>", "struct", ({"a": None, "b": None}, {"a": 1, "b": ""}, {"a": 1, "b": None}))
PAYLOADS = (BINARY, LIST, STRUCT)


def kinds(family: str | None = None) -> st.SearchStrategy[Kind]:
    """Kinds of a family, or any that can be a payload."""
    return st.sampled_from([k for k in (*KINDS, *PAYLOADS) if family is None or k.family == family])


def values(kind: Kind, *, nullable: bool = True) -> st.SearchStrategy[Any]:
    """Values of a kind; mostly the first few, so that they meet."""
    some = st.one_of(st.sampled_from(kind.values[:3]), st.sampled_from(kind.values))
    return st.one_of(some, some, some, st.none()) if nullable else some


def literal(value: Any, kind: Kind) -> str:
    """A value as SQL that Spark and DuckDB read alike."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'" if "'" not in value and '"' not in value else "'a'"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, float):
        return f"CAST('{'Infinity' if math.isinf(value) else value}' AS {kind.sql})"
    if isinstance(value, int):
        return f"CAST('{value}' AS {kind.sql})"
    return str(value)


def normal(value: Any) -> str:
    """A value such that SQL's equal values are equal texts."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value + 0.0)
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if value else "0"
    if isinstance(value, list):
        return f"[{', '.join(map(normal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {normal(inner)}' for name, inner in value.items())}}}"
    return repr(value)

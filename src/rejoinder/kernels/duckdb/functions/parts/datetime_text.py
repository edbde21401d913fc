"""Dates and timestamps as text in DuckDB: the shapes that Spark reads and writes.

Not supported, and a failure of the row: years before 1, zones by name other than UTC, and a time without a date, to
which Spark would add today's.
"""

from __future__ import annotations

from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import bound

BLANK = r"[\x00-\x20\x7f]*"
"""What Spark trims before it reads a number or a time."""

_YEAR = r"\+?([0-9]{4,6})"
DATE = rf"^{BLANK}{_YEAR}(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T](?s:.*))?)?)?{BLANK}$"
DAY = rf"^{BLANK}{_YEAR}(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}}))?)?{BLANK}$"
_ZONE = r"(?: ?(Z|UTC|[+-][0-9]{1,2}(?::?[0-9]{2,2})?))?"
_CLOCK = rf"([01]?[0-9]|2[0-3])(?::([0-5]?[0-9])(?::([0-5]?[0-9])(?:\.([0-9]{{0,9}}))?{_ZONE})?)?"
MOMENT = rf"^{BLANK}{_YEAR}-([0-9]{{1,2}})-([0-9]{{1,2}})[ T]{_CLOCK}{BLANK}$"

TIME = (
    rf"^{BLANK}T?([0-9]{{1,2}}):([0-5]?[0-9])(?::([0-5]?[0-9])(?:\.([0-9]{{0,9}}))?)?"
    rf"{BLANK}(?:([aApP])[mM])?{BLANK}$"
)


def read_time(text: str) -> str:
    """Read a time of day; NULL if the text is none."""
    parts, wrap = bound(f"regexp_extract({text}, {text_literal(TIME)}, ['h', 'n', 's', 'f', 'p'])")
    hour, with_hour = bound(f"TRY_CAST({parts}.h AS INTEGER)")
    half = f"({hour} % 12 + CASE WHEN lower({parts}.p) = 'p' THEN 12 ELSE 0 END)"
    hours = f"CASE WHEN {parts}.p = '' THEN {hour} WHEN {hour} BETWEEN 1 AND 12 THEN {half} END"
    rest = f"{parts}.n || ':' || {_or(parts, 's', '0')} || '.' || left({_or(parts, 'f', '0')}, 6)"
    clock = f"TRY_CAST(CAST({hours} AS VARCHAR) || ':' || {rest} AS TIME)"
    return wrap(with_hour(f"CASE WHEN {hours} < 24 THEN {clock} END"))


def read_date(text: str) -> str:
    """Read a date; NULL if the text is none."""
    parts, wrap = bound(f"regexp_extract({text}, {text_literal(DATE)}, ['y', 'm', 'd'])")
    return wrap(f"TRY_CAST({_dashed(parts)} AS DATE)")


def read_timestamp(text: str, *, zoned: bool) -> str:
    """Read a timestamp; NULL if the text is none."""
    day, with_day = bound(f"regexp_extract({text}, {text_literal(DAY)}, ['y', 'm', 'd'])")
    found = f"regexp_extract({text}, {text_literal(MOMENT)}, ['y', 'm', 'd', 'h', 'n', 's', 'f', 'z'])"
    parts, with_parts = bound(found)
    minutes = f"{parts}.h || ':' || {_or(parts, 'n', '00')}"
    clock = f"{minutes} || ':' || {_or(parts, 's', '00')} || '.' || {_or(parts, 'f', '0')}"
    moment = f"TRY_CAST({_dashed(parts)} || ' ' || {clock} AS TIMESTAMP)"
    if zoned:
        moment = f"({moment} - to_minutes({_minutes(f'{parts}.z')}))"
    moment = with_parts(f"CASE WHEN {parts}.y <> '' THEN {moment} END")
    return with_day(f"CASE WHEN {day}.y <> '' THEN TRY_CAST({_dashed(day)} AS TIMESTAMP) ELSE {moment} END")


def has_offset(text: str) -> str:
    """Whether a text that is a timestamp says its offset from UTC."""
    return f"(regexp_extract({text}, {text_literal(MOMENT)}, 8) <> '')"


def _dashed(parts: str) -> str:
    return f"({parts}.y || '-' || {_or(parts, 'm', '1')} || '-' || {_or(parts, 'd', '1')})"


def _or(parts: str, name: str, default: str) -> str:
    return f"COALESCE(nullif({parts}.{name}, ''), '{default}')"


def _minutes(zone: str) -> str:
    """The offset of a zone such as `+2`, `-02:30` or `+0230` in minutes; 0 for no zone."""
    hours = f"TRY_CAST(regexp_extract({zone}, '^[+-]([0-9]{{1,2}})', 1) AS INTEGER)"
    minutes = f"TRY_CAST(regexp_extract({zone}, '^[+-][0-9]{{1,2}}:?([0-9]{{2,2}})$', 1) AS INTEGER)"
    size = f"(COALESCE({hours}, 0) * 60 + COALESCE({minutes}, 0))"
    return f"CASE WHEN starts_with({zone}, '-') THEN -{size} ELSE {size} END"


def write_date(text: str) -> str:
    """Write a date as Spark does, with a sign for years outside 1 to 9999."""
    far = f"{_far(text)} || strftime({text}, '-%m-%d')"
    return f"CASE WHEN year({text}) BETWEEN 1 AND 9999 THEN CAST({text} AS VARCHAR) ELSE {far} END"


def write_timestamp(text: str) -> str:
    """Write a timestamp as Spark does: no zone, no trailing zeros."""
    clock = f"rtrim(rtrim(strftime({text}, '-%m-%d %H:%M:%S.%f'), '0'), '.')"
    whole = f"strftime({text}, '-%m-%d %H:%M:%S')"
    far = f"{_far(text)} || CASE WHEN epoch_us({text}) % 1000000 = 0 THEN {whole} ELSE {clock} END"
    return f"CASE WHEN year({text}) BETWEEN 1 AND 9999 THEN CAST({text} AS VARCHAR) ELSE {far} END"


def _far(text: str) -> str:
    year = f"CAST(abs(year({text})) AS VARCHAR)"
    sign = f"CASE WHEN year({text}) < 0 THEN '-' WHEN year({text}) > 9999 THEN '+' ELSE '' END"
    return f"{sign} || lpad({year}, greatest(4, length({year}))::INTEGER, '0')"

"""Patterns of `date_format`, as DuckDB computes them.

A pattern is a sequence of letters, repeated to say how wide a field is, quoted texts, and other signs that stand for
themselves. What Spark reads by the locale is English.
"""

from __future__ import annotations

import calendar
import re

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing

_PIECES = re.compile(r"(?P<field>([A-Za-z])\2*)|'(?P<quoted>(?:[^'{}]|'')*)'|(?P<sign>[^A-Za-z'\[\]{}#])")
_CODES = {
    "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m", "LLLL": "%B", "LLL": "%b", "LL": "%m", "L": "%-m",
    "dd": "%d", "d": "%-d", "DDD": "%j", "D": "%-j", "EEEE": "%A", "EEE": "%a", "EE": "%a", "E": "%a",
    "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M", "ss": "%S", "s": "%-S", "a": "%p",
}  # fmt: skip
_FIELDS = {
    **dict.fromkeys(("q", "Q"), "CAST(quarter({0}) AS VARCHAR)"),
    **{letters: f"strftime({{0}}, '{code}')" for letters, code in _CODES.items()},
    **{"S" * digits: f"left(strftime({{0}}, '%f'), {digits})" for digits in range(1, 7)},
    "y": "CAST(year({0}) AS VARCHAR)",
    "yy": "lpad(CAST(year({0}) % 100 AS VARCHAR), 2, '0')",
    "yyyy": "lpad(CAST(year({0}) AS VARCHAR), 4, '0')",
}


def unsupported_piece(pattern: str) -> str:
    """The first piece of a pattern that has no rendering; empty if every piece has one.

    >>> unsupported_piece("yyyy-MM-dd HH:mm"), unsupported_piece("dd.MM.yyyy zzz")
    ('', 'zzz')
    """
    position = 0
    while position < len(pattern):
        piece = _PIECES.match(pattern, position)
        if piece is None:
            return pattern[position]
        if piece["field"] and piece["field"] not in _FIELDS:
            return piece["field"]
        position = piece.end()
    return ""


def names_year(pattern: str) -> bool:
    """Whether a pattern has a field for the year.

    >>> names_year("dd.MM.yy"), names_year("'y' HH:mm")
    (True, False)
    """
    return any(piece["field"] and piece["field"][0] == "y" for piece in _PIECES.finditer(pattern))


_MONTHS = [month.lower() for month in calendar.month_name[1:]]
_READ = {
    "MMMM": ("m", "(?i:" + "|".join(_MONTHS) + ")"),
    "MMM": ("m", "(?i:" + "|".join(month[:3] for month in _MONTHS) + ")"),
    "yyyy": ("y", "[0-9]{4,4}"),
    **{letter * 2: (name, "[0-9]{2,2}") for letter, name in zip("MdHms", "mdhns", strict=True)},
    **{letter: (name, "[0-9]{1,2}") for letter, name in zip("MdHms", "mdhns", strict=True)},
    **{"S" * digits: ("f", f"[0-9]{{1,{digits}}}") for digits in range(1, 7)},
}
"""The name and the regular expression of a field of a pattern by which a time is read."""


def unreadable_piece(pattern: str) -> str:
    """The first piece of a pattern by which a text cannot be read; empty if every piece is supported.

    >>> unreadable_piece("dd.MM.yyyy HH:mm"), unreadable_piece("E yyyy"), unreadable_piece("Mdyyyy")
    ('', 'E', 'M')
    """
    position, names = 0, set()
    while position < len(pattern):
        piece = _PIECES.match(pattern, position)
        if piece is None:
            return pattern[position]
        position, field = piece.end(), piece["field"]
        if field is None:
            continue
        follows = pattern[position : position + 1]
        # a field of one letter takes all digits that follow
        if field not in _READ or _READ[field][0] in names or (len(field) == 1 and follows.isalpha()):
            return field
        names.add(_READ[field][0])
    return "" if names else pattern


def _read_time(call: Call) -> str:
    message = failing("the text is not a time by this pattern")
    return f"CASE WHEN {{0}} IS NOT NULL THEN COALESCE({_try_read_time(call)}, {message}) END"


def _try_read_time(call: Call) -> str:
    (pattern,) = call.operation.options
    parts, names = [], []
    for piece in _PIECES.finditer(str(pattern)):
        if piece["field"]:
            name, digits = _READ[piece["field"]]
            names.append(name)
            parts.append(f"({digits})")
        else:
            parts.append(re.escape(piece["sign"] or piece["quoted"].replace("''", "'") or "'"))
    listed = ", ".join(f"'{name}'" for name in names)
    found, with_found = bound(f"regexp_extract({{0}}, {text_literal('^' + ''.join(parts) + '$')}, [{listed}])")
    defaults = {"y": "1970", "m": "1", "d": "1", "h": "0", "n": "0", "s": "0", "f": "0"}
    texts = {name: f"{found}.{name}" if name in names else f"'{default}'" for name, default in defaults.items()}
    if "MMM" in str(pattern):
        texts["m"] = f"CAST(list_position({[month[:3] for month in _MONTHS]}, lower(left({found}.m, 3))) AS VARCHAR)"
    day = " || '-' || ".join(texts[name] for name in "ymd")
    clock = " || ':' || ".join(texts[name] for name in "hns")
    # years start with 1, and DuckDB takes 24 for the midnight after the day
    is_time = f"{found}.{names[0]} <> '' AND {texts['y']} <> '0000' AND {texts['h']} <> '24'"
    read = f"TRY_CAST({day} || ' ' || {clock} || '.' || {texts['f']} AS TIMESTAMP)"
    return with_found(f"CASE WHEN {is_time} THEN {read} END")


def _text(piece: re.Match[str]) -> str:
    if piece["field"]:
        return _FIELDS[piece["field"]]
    return text_literal(piece["sign"] or piece["quoted"].replace("''", "'") or "'")


def _date_format(call: Call) -> str:
    (pattern,) = call.operation.options
    # the first part makes the text NULL where the time is
    texts = ["left(strftime({0}, '%Y'), 0)", *(_text(piece) for piece in _PIECES.finditer(str(pattern)))]
    parts = " || ".join(texts)
    if not call.operation.can_fail:
        return f"({parts})"
    # Spark writes years of more digits with a sign
    message = failing("date_format supports the years 1 to 9999")
    return f"CASE WHEN year({{0}}) NOT BETWEEN 1 AND 9999 THEN {message} ELSE {parts} END"


RENDERINGS: dict[str, Rendering] = {
    "date_format": _date_format,
    "read_time": _read_time,
    "try_read_time": _try_read_time,
}

"""JSON texts as Spark's reader takes them, for the rows that DuckDB reads otherwise.

Spark's reader takes single quotes and control characters in texts, ignores what follows the first value, and refuses
NaN and trailing commas. Where a key occurs twice and the first value leads nowhere, it takes the second. Numbers with a
fraction are written as Java does.

Cost: some 10 µs per text. A template calls it only for texts that DuckDB does not read in the same way, and these rows
are read one by one: no kernel reads such texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

import pyarrow as pa

_BLANK = " \t\r\n"
_QUOTED = re.compile(r""""(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'""", re.DOTALL)
_STEPS = re.compile(r"\[(\d+)\]|\['([^']*)'\]|\.([^.\[]+)")
_CONTROL = re.compile(r"\\u00[01][0-9a-f]")


class _Pairs(list[tuple[str, Any]]):
    """An object, with every key as often as it occurs."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_refuse_constant, strict=False)
_STRICT = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_refuse_constant)
"""Refuses control characters in texts too."""
_MISSING = object()


def extract(texts: pa.ChunkedArray, paths: pa.ChunkedArray) -> pa.Array:
    """What `get_json_object` finds at a path of names and indexes, as text; NULL if there is nothing."""
    steps = {path: _steps(path) for path in paths.unique().to_pylist()}
    found = (_found(_read(text), steps[path]) for text, path in zip(_rows(texts), _rows(paths), strict=True))
    return pa.array([None if value is _MISSING else _raw(value) for value in found], pa.string())


def lengths(texts: pa.ChunkedArray) -> pa.Array:
    """The lengths of arrays as INT; NULL for other values."""
    values = (_read(text) for text in _rows(texts))
    return pa.array([len(value) if _is_array(value) else None for value in values], pa.int32())


def keys(texts: pa.ChunkedArray) -> pa.Array:
    """The names in objects; NULL for other values."""
    values = (_read(text) for text in _rows(texts))
    names = [[name for name, _ in value] if isinstance(value, _Pairs) else None for value in values]
    return pa.array(names, pa.list_(pa.string()))


def last(texts: pa.ChunkedArray, names: pa.ChunkedArray) -> pa.Array:
    """The last value of a name in objects that is not NULL, as text: what `json_tuple` finds."""
    values = (_read(text) for text in _rows(texts))
    found = (
        next((part for own, part in reversed(value) if own == name and part is not None), None)
        if isinstance(value, _Pairs)
        else None
        for value, name in zip(values, _rows(names), strict=True)
    )
    return pa.array([None if value is None else _raw(value) for value in found], pa.string())


def normal(texts: pa.ChunkedArray) -> pa.Array:
    """Texts as `from_json` reads them, in strict JSON: each name once, with its last value; `null` if it reads none."""
    values = (_read(text, _STRICT) for text in _rows(texts))
    return pa.array(["null" if value is _MISSING else _written(_once(value)) for value in values], pa.string())


def read_first(text: str) -> tuple[Any, bool]:
    """The first value of a text, with each name once, and whether there is one."""
    value = _read(text, _STRICT)
    return (None, False) if value is _MISSING else (_plain(value), True)


def _once(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return _Pairs({name: _once(part) for name, part in value}.items())
    return [_once(part) for part in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {name: _plain(part) for name, part in value}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _rows(texts: pa.ChunkedArray) -> Iterable[Any]:
    rows: list[Any] = texts.to_pylist()
    return rows


def _read(text: str | None, decoder: json.JSONDecoder = _DECODER) -> Any:
    """The first value of a text; `_MISSING` if there is none."""
    try:
        return decoder.raw_decode(_QUOTED.sub(_double_quoted, (text or "").lstrip(_BLANK)))[0]
    except (ValueError, RecursionError):
        return _MISSING


def _double_quoted(match: re.Match[str]) -> str:
    text = match["double"]
    if text is None:
        text = re.sub(r'\\.|"', lambda part: '\\"' if part[0] == '"' else part[0], match["single"])
    return '"' + text.replace(r"\'", "'") + '"' if r"\'" in text else f'"{text}"'


def _steps(path: str) -> list[int | str]:
    return [int(m[1]) if m[1] else m[2] if m[2] is not None else m[3] for m in _STEPS.finditer(path)]


def _is_array(value: Any) -> bool:
    return isinstance(value, list) and not isinstance(value, _Pairs)


def _found(value: Any, steps: list[int | str]) -> Any:
    if not steps or value is _MISSING:
        return value
    step, *rest = steps
    if isinstance(step, int):
        return _found(value[step], rest) if _is_array(value) and step < len(value) else _MISSING
    for name, part in value if isinstance(value, _Pairs) else ():
        if name == step and part is not None and (found := _found(part, rest)) is not _MISSING:
            return found
    return _MISSING


def _raw(value: Any) -> str:
    text = value if isinstance(value, str) else _written(value)
    return text.encode("utf-8", "replace").decode()


def _written(value: Any) -> str:
    """A value as Jackson writes it."""
    if isinstance(value, _Pairs):
        return "{" + ",".join(f"{_written(name)}:{_written(part)}" for name, part in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, float):
        return _java_double(value)
    text = json.dumps(value, ensure_ascii=False)
    return _CONTROL.sub(lambda code: "\\u" + code[0][2:].upper(), text) if isinstance(value, str) else text


def _java_double(number: float) -> str:
    """The shortest text of a number: plain from 0.001 to 10^7, with an exponent otherwise.

    >>> _java_double(1.5), _java_double(2e-7), _java_double(123456789012.5)
    ('1.5', '2.0E-7', '1.234567890125E11')
    """
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    if number in (float("inf"), float("-inf")):
        return '"Infinity"' if number > 0 else '"-Infinity"'
    digits, exponent = f"{number:.16e}".split("e")
    for precision in range(17):
        digits, exponent = f"{number:.{precision}e}".split("e")
        if float(f"{digits}e{exponent}") == number:
            break
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"

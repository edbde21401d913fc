"""Rows as the text in which Spark's golden files show them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rejoinder.sql.types.spark_types import spark_name


def schema_text(schema: pa.Schema) -> str:
    """Return a schema as `struct<a:int,b:string>`."""
    return f"struct<{','.join(f'{field.name}:{spark_name(field.type).lower()}' for field in schema)}>"


def row_text(row: Mapping[str, Any], schema: pa.Schema) -> str:
    """Return a row as one line, its values separated by tabs."""
    return "\t".join(_text(value, field.type, nested=False) for value, field in zip(row.values(), schema, strict=True))


def same_rows(ours: Iterable[str], theirs: str) -> bool:
    """Return whether the rows are those of a golden file, in any order; doubles may differ in their last digit."""
    lines = sorted("\n".join(ours).split("\n"))
    expected = sorted(theirs.split("\n"))
    if Counter(lines) == Counter(expected):
        return True
    key = _rounded
    return len(lines) == len(expected) and all(
        _same_line(a, b) for a, b in zip(sorted(lines, key=key), sorted(expected, key=key), strict=True)
    )


def _rounded(line: str) -> list[str]:
    return [f"{number:.9g}" if (number := _number(value)) is not None else value for value in line.split("\t")]


def _same_line(ours: str, theirs: str) -> bool:
    a, b = ours.split("\t"), theirs.split("\t")
    return len(a) == len(b) and all(_same_value(x, y) for x, y in zip(a, b, strict=True))


def _same_value(ours: str, theirs: str) -> bool:
    a, b = _number(ours), _number(theirs)
    both_real = a is not None and b is not None and any(sign in ours + theirs for sign in ".E")
    return ours == theirs or (both_real and math.isclose(a or 0.0, b or 0.0, rel_tol=1e-12, abs_tol=1e-15))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _text(value: Any, kind: pa.DataType, *, nested: bool) -> str:
    """Return a value as Spark's `HiveResult` shows it: text in quotes only inside of a nested value."""
    if value is None:
        return "null" if nested else "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _real(value, is_float=pa.types.is_float32(kind))
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ").rstrip("0" if value.microsecond else "")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return f'"{value}"' if nested else value
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return "{" + ",".join(
            f"{_text(k, kind.key_type, nested=True)}:{_text(v, kind.item_type, nested=True)}" for k, v in pairs
        ) + "}"  # fmt: skip
    if isinstance(value, Mapping):
        fields = (f'"{field.name}":{_text(value[field.name], field.type, nested=True)}' for field in kind)
        return "{" + ",".join(fields) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_text(item, kind.value_type, nested=True) for item in value) + "]"
    return str(value)


def _real(value: float, *, is_float: bool) -> str:
    """Return a DOUBLE or FLOAT as Java prints it."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    shortest = repr(value)
    if is_float:
        shortest = next(text for digits in range(1, 18) if _is_float(text := f"{value:.{digits}g}", value))
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = f"{Decimal(shortest):f}"
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


def _is_float(text: str, value: float) -> bool:
    return bool(pa.scalar(float(text), pa.float32()).as_py() == pa.scalar(value, pa.float32()).as_py())

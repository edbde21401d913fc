"""Check the columns that an operator is configured with: they exist, and times are integers, dates or timestamps."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.errors import TypeMismatch, UnknownName, near_misses

UNITS = "integers in a unit of their own, days of dates, microseconds of timestamps"


def field_of(schema: pa.Schema, name: str, place: str) -> pa.Field:
    """Return the column of that name. Raises `UnknownName`; `place` says what the column is used for."""
    if schema.get_field_index(name) < 0:
        raise UnknownName(
            f"there is no column `{name}`, which is {place}",
            detail=f"columns: {', '.join(schema.names) or 'none'}",
            hint=near_misses(name, schema.names) or "use one of these",
        )
    return schema.field(name)


def unit_of(schema: pa.Schema, name: str, place: str) -> str:
    """Return the unit of the times of a column. Raises `TypeMismatch` if it has no times."""
    kind = field_of(schema, name, place).type
    if pa.types.is_struct(kind) and kind.get_field_index("start") >= 0:  # a window, whose time is its start
        kind = kind.field("start").type
    if pa.types.is_signed_integer(kind):
        return "integers"
    if pa.types.is_date32(kind):
        return "days"
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return "microseconds"
    raise TypeMismatch(
        f"column `{name}`, which is {place}, has no times",
        detail=f"its type is {kind}; times are {UNITS}",
        hint='cast it to int64, date32 or timestamp("us")',
    )

"""STARTING AT an event time: the condition on rows of a source, and whether retained rows include all of them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa

from rejoinder.ir.catalog import Source
from rejoinder.ir.expressions.expression import Expression, conjunction
from rejoinder.ir.expressions.nodes import Column, Literal
from rejoinder.ir.expressions.operators import compared

_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400_000_000


def clock_columns(source: Source) -> tuple[str, ...]:
    """Return the event-time columns of a source that are timestamps or dates."""
    kinds = {name: source.schema.field(name).type for name in source.watermarks}
    return tuple(name for name, kind in kinds.items() if pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def not_before(source: Source, micros: int) -> Expression | None:
    """Return the condition that no event time of a row is below a time; a date starts at midnight."""
    found = []
    for name in clock_columns(source):
        time = Literal(_EPOCH + timedelta(microseconds=micros), pa.timestamp("us"))
        value = Column(name, source.schema.field(name).type)
        found.append(Expression(compared(value, ">=", time), f"{name} >= TIMESTAMP '{time.value}'"))
    return conjunction(found)


def covers_time(source: Source, column: str, bound: int, micros: int | None) -> bool:
    """Return whether the rows with `column >= bound`, in the unit of the column, include all rows since a time."""
    if micros is None or column not in clock_columns(source):
        return False
    is_date = pa.types.is_date(source.schema.field(column).type)
    return bound <= (-(-micros // _DAY) if is_date else micros)

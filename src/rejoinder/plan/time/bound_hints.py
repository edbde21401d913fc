"""Hints for queries whose state is not bounded in time: the missing WATERMARK or condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import pyarrow as pa

from rejoinder.ir.catalog import Source
from rejoinder.ir.identities import DerivedRows, RelationId, source_of
from rejoinder.plan.blocks.normal_form import Derived

Time = tuple[str, pa.DataType]
"""An event time, as a condition names it, and its type."""


def missing_edit(
    rows: RelationId,
    changes: RelationId,
    sources: Mapping[str, Source],
    derived: Mapping[RelationId, Derived],
    *,
    both: bool = False,
) -> str:
    """Return the edit that bounds how far back changes of one relation match rows of another.

    `both`: the opposite direction is not bounded either.
    """
    read = [sources.get(source_of(relation)) for relation in (rows, changes)]
    for source in read:
        if source is not None and not source.watermarks:
            return watermark_edit(source)
    if rows == changes:
        if read[0] is not None:
            return f"add conditions that bound an event time of `{rows}` both ways, by columns with a WATERMARK"
        texts = (made.operation.certificate for made in derived.values() if rows in (made.id, made.input))
        edits = [text.edit for text in texts if text is not None]
        return edits[0] if edits else "GROUP BY a window of an event time, such as TUMBLE(ts, INTERVAL 1 HOUR)"
    if any(derived[relation].operation.versions is not None for relation in (rows, changes) if relation in derived):
        return "emit rows by their own time: EMIT WHEN WATERMARK PAST o.ts"
    times = [_times(source) for source in read if source is not None]
    if len(times) < 2:
        return f"add a condition that bounds an event time of {named(changes)} by one of {named(rows)} and a constant"
    return condition_edit(*times, both=both)


def condition_edit(rows: Sequence[Time], changes: Sequence[Time], *, both: bool) -> str:
    """Return the condition to add, on times of one type if possible: how long after a row changes can match it."""
    pairs = list(product(rows, changes))
    (earlier, _), (later, kind) = next((pair for pair in pairs if pair[0][1] == pair[1][1]), pairs[0])
    amount = "INTERVAL 1 HOUR" if pa.types.is_timestamp(kind) else "INTERVAL 1 DAY" if pa.types.is_date(kind) else "10"
    return f"add a condition such as {later} {f'BETWEEN {earlier} AND' if both else '<='} {earlier} + {amount}"


def watermark_edit(source: Source) -> str:
    """Return the watermark to declare, on a timestamp or date column if there is one."""
    times = (f for f in source.schema if pa.types.is_timestamp(f.type) or pa.types.is_date(f.type))
    time = next(times, None)
    if time is None:
        return f"add WATERMARK … DELAY OF … to the columns of `{source.name}`, on its event time"
    return declaration_edit(source, time.name)


def declaration_edit(source: Source, column: str) -> str:
    """Return the watermark to declare on a column."""
    kind = source.schema.field(column).type
    delay = (
        "INTERVAL 5 SECONDS" if pa.types.is_timestamp(kind) else "INTERVAL 1 DAY" if pa.types.is_date(kind) else "10"
    )
    return f"add WATERMARK {column} DELAY OF {delay} to the columns of `{source.name}`"


def named(relation: RelationId) -> str:
    """Return a relation for a message: a source or view by name, a derived relation by kind."""
    return f"the {relation.kind}" if isinstance(relation, DerivedRows) else f"`{source_of(relation)}`"


def _times(source: Source) -> list[Time]:
    return [(f"{source.name}.{name}", source.schema.field(name).type) for name in source.watermarks]

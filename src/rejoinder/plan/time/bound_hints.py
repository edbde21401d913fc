"""What a query lacks to be bounded in time: a WATERMARK, or a condition on the event times that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import pyarrow as pa

from rejoinder.ir.catalog import Source
from rejoinder.ir.source_variants import source_of

Time = tuple[str, pa.DataType]
"""An event time, as a condition names it, and its type."""


def missing_edit(rows: str, changes: str, sources: Mapping[str, Source], *, both: bool = False) -> str:
    """The edit that would say how far back changes of one relation can reach among rows of another.

    `both`: nothing is said of the other way round either.
    """
    for name in (rows, changes):
        if name in sources and not sources[name].watermarks:
            return watermark_edit(sources[name])
    if rows == changes:
        if rows in sources:
            return f"add conditions that bound an event time of `{rows}` both ways, by columns with a WATERMARK"
        return "GROUP BY a window of an event time, such as TUMBLE(ts, INTERVAL 1 HOUR)"
    if any(name.startswith("validity#") for name in (rows, changes)):
        return "let rows out by a time of their own: EMIT WHEN WATERMARK PAST o.ts"
    if rows not in sources or changes not in sources:
        return f"add a condition that bounds an event time of {named(changes)} by one of {named(rows)} and a constant"
    return condition_edit(*(_times(sources[name]) for name in (rows, changes)), both=both)


def condition_edit(rows: Sequence[Time], changes: Sequence[Time], *, both: bool) -> str:
    """The condition to add, on times of one type if there are such: changes come until so long after a row."""
    pairs = list(product(rows, changes))
    (earlier, _), (later, kind) = next((pair for pair in pairs if pair[0][1] == pair[1][1]), pairs[0])
    amount = "INTERVAL 1 HOUR" if pa.types.is_timestamp(kind) else "INTERVAL 1 DAY" if pa.types.is_date(kind) else "10"
    return f"add a condition such as {later} {f'BETWEEN {earlier} AND' if both else '<='} {earlier} + {amount}"


def watermark_edit(source: Source) -> str:
    """The watermark to declare, on a column that is a time if there is one."""
    times = (f for f in source.schema if pa.types.is_timestamp(f.type) or pa.types.is_date(f.type))
    time = next(times, None)
    if time is None:
        return f"add WATERMARK … DELAY OF … to the columns of `{source.name}`, on its event time"
    return declaration_edit(source, time.name)


def declaration_edit(source: Source, column: str) -> str:
    """The watermark to declare on a column."""
    kind = source.schema.field(column).type
    delay = (
        "INTERVAL 5 SECONDS" if pa.types.is_timestamp(kind) else "INTERVAL 1 DAY" if pa.types.is_date(kind) else "10"
    )
    return f"add WATERMARK {column} DELAY OF {delay} to the columns of `{source.name}`"


def named(relation: str) -> str:
    """A relation in a message: a source or a view by its name, one that a query makes by what it is."""
    name = source_of(relation)
    return f"the {name.partition('#')[0]}" if "#" in name else f"`{name}`"


def _times(source: Source) -> list[Time]:
    return [(f"{source.name}.{name}", source.schema.field(name).type) for name in source.watermarks]

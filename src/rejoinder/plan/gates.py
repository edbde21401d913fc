"""Gates: the views whose changes wait until the clock or the watermark says that they may come out.

A gate is a temporal filter behind a view's relation: the view holds the rows whose release is reached. What waits is
kept by time segment, so that an epoch reads only what becomes due, and forgets it whole.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rejoinder.errors import InvalidSql
from rejoinder.plan.catalog import Source
from rejoinder.plan.lineage import origins, sources_of
from rejoinder.plan.logical import RELEASE, Emission
from rejoinder.plan.normal import Block, Derived
from rejoinder.plan.program import Gate, row_arrangement

MICROSECOND = pa.timestamp("us")
WIDTHS = {"timestamp": 60_000_000, "date": 1, "integer": 1 << 16}


def gate_of(
    view: str, block: Block, derived: Mapping[str, Derived], emission: Emission, sources: Mapping[str, Source]
) -> Gate:
    """The gate of a view. Raises `InvalidSql` if a watermark that it needs is not declared."""
    if emission.interval:
        schema = block.schema.append(pa.field(RELEASE, MICROSECOND))
        return Gate(view, row_arrangement(f"{view}/pending", schema), emission.interval, emission.interval)
    release = dict(block.outputs)[RELEASE]
    needed = sorted(origins(release, block, derived))
    for source, column in needed:
        if column not in sources[source].watermarks:
            raise InvalidSql(
                f"`{view}` waits for a watermark of `{source}`.`{column}`, and none is declared",
                detail=f"EMIT {emission.policy.upper()} releases a row by that column",
                hint=f"add WATERMARK {column} DELAY OF INTERVAL 5 SECONDS to the columns of `{source}`",
            )
    if not needed:
        raise InvalidSql(
            f"`{view}` waits for a watermark, but for none of a column",
            detail=f"release: {release.text or release.sql}",
            hint="take an event-time column, or the end of a window: WINDOW_END(w)",
        )
    all_of = [(name, c) for name in sorted(sources_of(block, derived)) for c in sources[name].watermarks]
    kinds = {sources[name].schema.field(c).type.id for name, c in needed} | {release.type.id}
    if len(kinds) > 1:
        raise InvalidSql(
            f"`{view}` compares a release of type {release.type} with watermarks of another type",
            detail=", ".join(f"{name}.{c}: {sources[name].schema.field(c).type}" for name, c in needed),
            hint="release rows by a column of the type of the event-time column",
        )
    same = [(n, c) for n, c in all_of if sources[n].schema.field(c).type.id in kinds]
    return Gate(view, row_arrangement(f"{view}/pending", block.schema), width_of(release.type), 0, tuple(same))


def width_of(kind: pa.DataType) -> int:
    """The width of a time segment, in the unit of a type."""
    if pa.types.is_timestamp(kind):
        return WIDTHS["timestamp"]
    return WIDTHS["date" if pa.types.is_date32(kind) else "integer"]

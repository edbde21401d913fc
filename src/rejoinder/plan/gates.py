"""Gates: the views whose changes wait until the clock or the watermark says that they may come out.

A gate is a temporal filter behind a view's relation: the view holds the rows whose release is reached. What waits is
kept by time segment, so that an epoch reads only what becomes due, and forgets it whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from rejoinder.errors import InvalidSql
from rejoinder.plan.catalog import Source
from rejoinder.plan.lineage import Origin, origins, sources_of
from rejoinder.plan.logical import RELEASE, Emission
from rejoinder.plan.normal import Block, Derived
from rejoinder.plan.program import Gate, row_arrangement

MICROSECOND = pa.timestamp("us")
WIDTHS = {"timestamp": 60_000_000, "date": 1, "integer": 1 << 16}


def gates_of(
    view: str, block: Block, derived: Mapping[str, Derived], emission: Emission, sources: Mapping[str, Source]
) -> tuple[Gate, ...]:
    """The gates of a view. Raises `InvalidSql` if a watermark that it needs is not declared."""
    pending = row_arrangement(f"{view}/pending", block.schema)
    if emission.interval:
        schema = block.schema.append(pa.field(RELEASE, MICROSECOND))
        pending = row_arrangement(f"{view}/pending", schema)
        return (Gate(view, pending, emission.interval, emission.interval),)
    width = width_of(dict(block.outputs)[RELEASE].type)
    if emission.clocks:
        each = [replace(pending, relation=f"{view}/pending{at or ''}") for at in range(len(emission.clocks))]
        return tuple(
            Gate(view, own, width, 0, (origin,), at)
            for at, (own, origin) in enumerate(zip(each, emission.clocks, strict=True))
        )
    return (Gate(view, pending, width, 0, _watermarks(view, block, derived, emission, sources)),)


def _watermarks(
    view: str, block: Block, derived: Mapping[str, Derived], emission: Emission, sources: Mapping[str, Source]
) -> tuple[Origin, ...]:
    """The watermarks that a row waits for: all that its view reads of the type of its release."""
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
    return tuple((n, c) for n, c in all_of if sources[n].schema.field(c).type.id in kinds)


def width_of(kind: pa.DataType) -> int:
    """The width of a time segment, in the unit of a type."""
    if pa.types.is_timestamp(kind):
        return WIDTHS["timestamp"]
    return WIDTHS["date" if pa.types.is_date32(kind) else "integer"]

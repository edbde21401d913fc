"""Watermark status: the watermark of each partition, whether it is idle, and which partition blocks each view."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, NamedTuple

import pyarrow as pa

from rejoinder.engine.engine import Engine
from rejoinder.engine.time.processing_time import STILL
from rejoinder.engine.version import Version
from rejoinder.formats.text.row_text import length_text
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.state.watermarks import Partition, Watermarks, keys_of, shown
from rejoinder.watermarks.formula import (
    Formula,
    Greatest,
    Least,
    Lifted,
    RetainedMinimum,
    UnionMinimum,
    Watermark,
    value_of,
)

DAY = 86_400_000_000


class Blocker(NamedTuple):
    """The partition and event-time column that a view waits for. `partition` is None if none is known yet."""

    source: str
    partition: Partition | None
    column: str


def watermark_rows(engine: Engine) -> list[dict[str, Any]]:
    """Return the rows of SHOW WATERMARKS: one for each event-time column of each partition.

    `watermark` is that of the partition, `source_watermark` that of the source: the minimum over the partitions that
    are not idle. `blocks` lists the views that would advance if this partition did. While processing time differs from
    the clock, there is a row `(clock)`: `watermark` is the clock at the last epoch, `source_watermark` the processing
    time of that epoch.
    """
    version = engine.version
    imposed = version.plan.program.sources  # with the watermarks that views impose
    sources = [imposed.get(source.name, source) for source in version.catalog.sources]
    blockers = {view.name: blocker_of(version, view.name) for view in version.catalog.views}
    rows = [row for source in sources for row in _rows(version.watermarks, source, blockers)]
    return rows + _clock_rows(version, engine.time.wall)


def _clock_rows(version: Version, wall: int | None) -> list[dict[str, Any]]:
    """Return one row if the processing time of the last epoch differed from the clock."""
    latest = version.timeline.latest
    if wall is None or abs(wall - latest) <= STILL:
        return []
    return [
        {
            "source": "(clock)",
            "partition": None,
            "column": "processing time",
            "watermark": _clock(wall),
            "source_watermark": _clock(latest),
            "delay": length_text(abs(wall - latest) * 1000),
            "idle_since": None,
            "blocks": sorted(
                {gate.view for gate in version.plan.program.gates if gate.interval and not gate.is_inside}
            ),
        }
    ]


def _rows(watermarks: Watermarks, source: Source, blockers: dict[str, Blocker | None]) -> Iterator[dict[str, Any]]:
    snapshot = watermarks.sources.get(source.name, {"inputs": []})
    inputs = {entry["input"]: entry for entry in snapshot["inputs"]}
    partitions: list[Partition | None] = [*watermarks.partitions_of(source)]
    for partition in partitions or [None]:
        entry = {} if partition is None else inputs.get(partition, {})
        values = dict(entry.get("values", []))
        since = entry.get("idle_since")
        for column in source.watermarks:
            kind = source.schema.field(column).type
            yield {
                "source": source.name,
                "partition": partition,
                "column": column,
                "watermark": shown(values.get(keys_of(source).index(column)), kind),
                "source_watermark": shown(watermarks.of(source.name, column), kind),
                "delay": delay_text(source.watermarks[column], kind),
                "idle_since": None if since is None else _clock(since),
                "blocks": [view for view, blocker in blockers.items() if blocker == (source.name, partition, column)],
            }


def blocker_of(version: Version, view: str) -> Blocker | None:
    """Return the watermark that a view waits for, to emit rows or to expire them; None if it waits for none."""
    program, watermarks = version.plan.program, version.watermarks

    def value(limit: Formula) -> int:
        return value_of(limit, watermarks.times, LEAST)

    limits = [gate.limit for gate in program.gates_of(view) if gate.limit is not None]
    if not limits:
        used = {name for name, users in version.dataflow.users.items() if view in program.named(users)}
        retentions = [retention for name, retention in version.dataflow.retentions.items() if name in used]
        users = [[limit.below for limit in user] for retention in retentions for user in retention.users]
        limits = [max(user, key=value) for user in users]  # a row expires for a user by the first limit that passes it
    if not limits:
        return None
    leaf = _blocking_watermark(min(limits, key=value), watermarks)
    if leaf is None:
        return None
    return Blocker(leaf.source, _slowest_partition(watermarks, program.sources[leaf.source], leaf), leaf.column)


def _blocking_watermark(formula: Formula, watermarks: Watermarks) -> Watermark | None:
    """Return the watermark that determines the value of a formula; None if all branches of a union are idle."""

    def value(part: Formula) -> int:
        return value_of(part, watermarks.times, LEAST)

    match formula:
        case Watermark():
            return formula
        case Lifted():
            return _blocking_watermark(formula.of, watermarks)
        case Least():
            return _blocking_watermark(min(formula.of, key=value), watermarks)
        case Greatest():
            return _blocking_watermark(max(formula.of, key=value), watermarks)
        case UnionMinimum():
            branches = zip(formula.of, formula.sources, strict=True)
            active = [branch for branch, names in branches if not all(watermarks.is_idle(name) for name in names)]
            return _blocking_watermark(min(active, key=value), watermarks) if active else None
        case RetainedMinimum(own, met):  # a retained row expires by the watermarks of the other inputs
            return _blocking_watermark(own if met is None or value(formula) >= value(own) else met, watermarks)


def _slowest_partition(watermarks: Watermarks, source: Source, leaf: Watermark) -> Partition | None:
    """Return the slowest partition that is not idle, or the slowest if all are idle; None if none is known."""
    key = keys_of(source).index(leaf.column)
    inputs = watermarks.sources.get(source.name, {"inputs": []})["inputs"]
    active = [entry for entry in inputs if not entry["idle"]] or inputs
    slowest = min(active, key=lambda entry: dict(entry["values"]).get(key, LEAST), default=None)
    if slowest is None:
        return next(iter(watermarks.partitions_of(source)), None)
    partition: Partition = slowest["input"]
    return partition


def delay_text(delay: int | None, kind: pa.DataType) -> str | None:
    """Return the delay of a watermark as text; None if the watermark is explicit."""
    if delay is None:
        return None
    return str(delay) if pa.types.is_integer(kind) else length_text(delay * (DAY if pa.types.is_date(kind) else 1))


def _clock(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).replace(tzinfo=None)

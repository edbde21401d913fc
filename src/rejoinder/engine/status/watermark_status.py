"""What holds what: the watermarks of partitions, who is idle, and for each view the input that holds it back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from rejoinder.engine.engine import Engine
from rejoinder.engine.time.processing_time import STILL
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.state.row_text import length_text
from rejoinder.state.watermarks import Partition, Watermarks, keys_of, shown
from rejoinder.watermarks.formula import (
    Formula,
    Greatest,
    Least,
    RetainedMinimum,
    Stepped,
    UnionMinimum,
    Watermark,
    value_of,
)

DAY = 86_400_000_000
Holder = tuple[str, Partition | None, str]


def watermark_rows(engine: Engine) -> list[dict[str, Any]]:
    """The rows of SHOW WATERMARKS: one for each event-time column of each partition.

    `watermark` is that of the partition, `released` that of the source: how far the slowest partition is that is not
    idle. `holds` are the views that would go on if this one did. While processing time is not what the clock says,
    there is a row `(clock)`: `watermark` is the clock's time at the last epoch, `released` the time of that epoch.
    """
    with engine.lock:
        imposed = engine.plan.program.sources  # with the watermarks that views impose
        sources = [imposed.get(source.name, source) for source in engine.catalog.sources]
        holders = {view.name: holder_of(engine, view.name) for view in engine.catalog.views}
        return [row for source in sources for row in _rows(engine.watermarks, source, holders)] + _clock_rows(engine)


def _clock_rows(engine: Engine) -> list[dict[str, Any]]:
    """One row if the last epoch's time is not what the clock said then."""
    wall, latest = engine.time.wall, engine.timeline.latest
    if wall is None or abs(wall - latest) <= STILL:
        return []
    return [
        {
            "source": "(clock)",
            "partition": None,
            "column": "processing time",
            "watermark": _clock(wall),
            "released": _clock(latest),
            "delay": length_text(abs(wall - latest) * 1000),
            "idle_since": None,
            "holds": sorted({gate.view for gate in engine.plan.program.gates if gate.interval}),
        }
    ]


def _rows(known: Watermarks, source: Source, holders: dict[str, Holder | None]) -> Iterator[dict[str, Any]]:
    snapshot = known.sources.get(source.name, {"inputs": []})
    inputs = {each["input"]: each for each in snapshot["inputs"]}
    named: list[Partition | None] = [*known.partitions_of(source)]
    for partition in named or [None]:
        said = {} if partition is None else inputs.get(partition, {})
        values = dict(said.get("values", []))
        since = said.get("idle_since")
        for column in source.watermarks:
            kind = source.schema.field(column).type
            yield {
                "source": source.name,
                "partition": partition,
                "column": column,
                "watermark": shown(values.get(keys_of(source).index(column)), kind),
                "released": shown(known.of(source.name, column), kind),
                "delay": delay_text(source.watermarks[column], kind),
                "idle_since": None if since is None else _clock(since),
                "holds": [view for view, holder in holders.items() if holder == (source.name, partition, column)],
            }


def holder_of(engine: Engine, view: str) -> Holder | None:
    """The source, partition and column that a view waits for, to let rows out or to forget them; None if for nobody."""
    program, known = engine.plan.program, engine.watermarks

    def value(limit: Formula) -> int:
        return value_of(limit, known.times, LEAST)

    limits = [gate.limit for gate in program.gates_of(view) if gate.limit is not None]
    if not limits:
        used = {name for name, users in engine.dataflow.users.items() if view in program.named(users)}
        kept = [retention for name, retention in engine.dataflow.retentions.items() if name in used]
        users = [[limit.below for limit in user] for retention in kept for user in retention.users]
        limits = [max(user, key=value) for user in users]  # the first limit of a user that passes is enough
    if not limits:
        return None
    leaf = _holding(min(limits, key=value), known)
    return None if leaf is None else (leaf.source, _partition(known, program.sources[leaf.source], leaf), leaf.column)


def _holding(formula: Formula, known: Watermarks) -> Watermark | None:
    """The watermark that a formula's value depends on."""

    def value(each: Formula) -> int:
        return value_of(each, known.times, LEAST)

    match formula:
        case Watermark():
            return formula
        case Stepped():
            return _holding(formula.of, known)
        case Least():
            return _holding(min(formula.of, key=value), known)
        case Greatest():
            return _holding(max(formula.of, key=value), known)
        case UnionMinimum():
            branches = zip(formula.of, formula.sources, strict=True)
            active = [branch for branch, names in branches if not all(known.is_idle(name) for name in names)]
            return _holding(min(active, key=value), known) if active else None
        case RetainedMinimum(own, met):  # what is kept waits for the other inputs
            return _holding(own if met is None or value(formula) >= value(own) else met, known)


def _partition(known: Watermarks, source: Source, leaf: Watermark) -> Partition | None:
    """The partition that a source waits for: the slowest that is not idle, or the slowest if all are."""
    key = keys_of(source).index(leaf.column)
    inputs = known.sources.get(source.name, {"inputs": []})["inputs"]
    active = [each for each in inputs if not each["idle"]] or inputs
    slowest = min(active, key=lambda each: dict(each["values"]).get(key, LEAST), default=None)
    found: Partition | None = next(iter(known.partitions_of(source)), None) if slowest is None else slowest["input"]
    return found


def delay_text(delay: int | None, kind: pa.DataType) -> str | None:
    """How far a watermark stays behind the times that are seen; None if it is told from outside."""
    if delay is None:
        return None
    return str(delay) if pa.types.is_integer(kind) else length_text(delay * (DAY if pa.types.is_date(kind) else 1))


def _clock(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).replace(tzinfo=None)

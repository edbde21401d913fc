"""The status of a flow at its newest commit, as frozen data: the panels of the page and the metrics show the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

from rejoinder.engine.engine import Engine
from rejoinder.engine.status.explain_statements import output_watermarks
from rejoinder.engine.status.pending_changes import pending_views
from rejoinder.engine.status.watermark_status import blocker_of, watermark_rows
from rejoinder.engine.version import Version
from rejoinder.errors import RejoinderError
from rejoinder.ir.identities import PendingRows
from rejoinder.state.epoch_log import EpochEntry
from rejoinder.state.flow_state import State
from rejoinder.store.commits.manifest import Manifest
from rejoinder.web.graph import Graph, graph_of


@dataclass(frozen=True)
class Stored:
    """The size of an arrangement or of a changelog."""

    rows: int
    bytes: int
    growth: int | None = None
    """Bytes more than at the oldest retained commit; None if that has no such state."""


@dataclass(frozen=True)
class ViewStatus:
    """A view: how much it changes, how far its event time is, and what it waits for."""

    name: str
    changes: tuple[int | None, ...]
    """Changes in each epoch of the log; None if the log does not name the view in that epoch."""
    last_change: int | None
    """The last epoch with changes; None before the first."""
    watermarks: Mapping[str, Any]
    behind_ms: int | None
    """How far its slowest watermark is behind processing time; None without event time."""
    blocked_by: str | None
    pending: int
    """Changes that are not emitted yet, as stored."""
    waits: str | None
    late: int


@dataclass(frozen=True)
class WatermarkStatus:
    """The watermark of a column of a partition. `behind_ms` is relative to processing time; None for numbers."""

    source: str
    partition: str
    column: str
    value: Any
    delay: str | None
    idle_since: datetime | None
    blocks: tuple[str, ...]
    behind_ms: int | None


@dataclass(frozen=True)
class SinkStatus:
    """A sink: the last delivered epoch, and how many epochs it is behind."""

    name: str
    delivered: int | None
    behind: int


@dataclass(frozen=True)
class FlowStatus:
    """Everything that the first screen shows."""

    place: str
    version: int
    epoch: int
    time_ms: int
    graph: Graph
    entries: tuple[EpochEntry, ...]
    stored: Mapping[str, Stored]
    """By id of the arrangement."""
    views: tuple[ViewStatus, ...]
    watermarks: tuple[WatermarkStatus, ...]
    rejected: Mapping[str, int]
    """By source."""
    sinks: tuple[SinkStatus, ...]

    @property
    def seconds(self) -> float:
        """The time that the epoch log covers."""
        return (self.entries[-1].time_ms - self.entries[0].time_ms) / 1000 if self.entries else 0

    def rate(self, name: str) -> float | None:
        """Return the rows per second that a source has read, or changes of a view, over the epoch log."""
        counts = [entry.rows_in.get(name, entry.rows_out.get(name, 0)) for entry in self.entries[1:]]
        return sum(counts) / self.seconds if self.seconds else None


def status_of(engine: Engine, before: Manifest | None) -> FlowStatus:
    """Return the status at the engine's version. Growth is since the older commit `before`."""
    version = engine.version
    manifest = version.manifest
    assert manifest is not None, "the state has a commit"
    waits, now = pending_views(engine), version.timeline.latest
    state = None if before is None else State.from_json(before.spines)
    return FlowStatus(
        place=engine.store.url,
        version=manifest.version,
        epoch=version.epoch,
        time_ms=now,
        graph=graph_of(version.catalog, version.plan),
        entries=version.log.entries,
        stored={name: _stored(version, name, state) for name in version.state.arrangements},
        views=tuple(_view(version, view.name, waits.get(view.name)) for view in version.catalog.views),
        watermarks=tuple(_watermark(row, now) for row in watermark_rows(engine)),
        rejected={s.name: count for s in version.catalog.sources if (count := _written(version, str(s.rejected)))},
        sinks=tuple(_sink(version, sink.name) for sink in version.catalog.sinks),
    )


def _stored(version: Version, name: str, before: State | None) -> Stored:
    parts = version.state.arrangements[name]
    total = sum(part.bytes for part in parts)
    older = None if before is None else before.arrangements.get(name)
    growth = None if older is None else total - sum(part.bytes for part in older)
    return Stored(sum(part.rows for part in parts), total, growth)


def _view(version: Version, name: str, waits: str | None) -> ViewStatus:
    changed = [ref.epochs[1] for part in version.state.changelogs.get(name, ()) for ref in part.refs if ref.rows]
    watermarks = output_watermarks(version, name)
    behind = [lag for value in watermarks.values() if (lag := _behind(value, version.timeline.latest)) is not None]
    try:
        blocker = blocker_of(version, name)
    except RejoinderError:  # the page shows the rest
        blocker = None
    pending = [
        a.id for a in version.dataflow.arrangements if isinstance(a.relation, PendingRows) and a.relation.view == name
    ]
    return ViewStatus(
        name,
        tuple(entry.rows_out.get(name, 0 if "" not in entry.rows_out else None) for entry in version.log.entries),
        max(changed, default=None),
        watermarks,
        max(behind, default=None),
        None if blocker is None else f"{blocker.source}.{blocker.column}",
        sum(part.rows for each in pending for part in version.state.arrangements.get(each, ())),
        waits,
        sum(version.watermarks.late.get(name, {}).values()),
    )


def _watermark(row: Mapping[str, Any], now: int) -> WatermarkStatus:
    partition = "" if row["partition"] is None else str(row["partition"])
    return WatermarkStatus(
        row["source"],
        partition,
        row["column"],
        row["watermark"],
        row["delay"],
        row["idle_since"],
        tuple(row["blocks"]),
        _behind(row["watermark"], now),
    )


def milliseconds_of(value: Any) -> int | None:
    """Return an event time in milliseconds since 1970; None if it is not a time, or before the year 1."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    aware = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
    return (aware - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)


def _behind(value: Any, now: int) -> int | None:
    time = milliseconds_of(value)
    return None if time is None else now - time


def _written(version: Version, changelog: str) -> int:
    return sum(part.rows for part in version.state.changelogs.get(changelog, ()))


def _sink(version: Version, name: str) -> SinkStatus:
    delivered = version.delivered.get(version.sinks[name].identity)
    epoch = None if delivered is None else delivered.epoch
    return SinkStatus(name, epoch, version.epoch - (-1 if epoch is None else epoch))

"""A version of a flow: everything that one commit contains, in the types of the engine.

`Version.read` and `Version.to_json` mirror each other. The engine publishes a version, then adopts it with one
assignment. So a reader on another thread that takes `engine.version` once sees one consistent state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rejoinder.host.entropy import token
from rejoinder.ir.catalog import Catalog
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.physical.dataflow import Dataflow
from rejoinder.plan.planning import Plan
from rejoinder.state.completeness import complete_sources
from rejoinder.state.deliveries import Deliveries
from rejoinder.state.epoch_log import EpochLog
from rejoinder.state.flow_state import State
from rejoinder.state.manifest_decoding import decoding
from rejoinder.state.positions import Positions, position_files
from rejoinder.state.sink_progress import Delivered, progress_file, recorded, to_json
from rejoinder.state.timeline import Timeline
from rejoinder.state.watermarks import Times, Watermarks
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.object_store import ObjectStore

Planner = Callable[[Catalog, Mapping[str, Statistics]], Plan]


@dataclass(frozen=True)
class AttachedSink:
    """A sink that is defined: its identity, and the epoch at which it was defined."""

    identity: str
    since: int


@dataclass(frozen=True)
class Version:
    """The committed state of a flow. A version that is not published yet has the manifest that it builds on."""

    manifest: Manifest | None
    """None for a new flow, before its first commit."""
    catalog: Catalog
    plan: Plan
    """Planned with the statistics of the last definition: others could need arrangements that do not exist."""
    state: State
    timeline: Timeline = field(default_factory=Timeline)
    """When each epoch was committed."""
    created: Mapping[str, int] = field(default_factory=dict)
    """The epoch at which each view was defined."""
    positions: Positions = field(default_factory=Positions)
    """The position of each stream of a source (`state.positions`)."""
    attached: Mapping[str, str] = field(default_factory=dict)
    """The identity of each source that is read. The rows and the position of a source are dropped with it."""
    sinks: Mapping[str, AttachedSink] = field(default_factory=dict)
    delivered: Mapping[str, Delivered] = field(default_factory=dict)
    """The progress of each sink, by its identity. It advances between two commits too (`state.sink_progress`)."""
    watermarks: Watermarks = field(default_factory=Watermarks)
    deliveries: Deliveries = field(default_factory=Deliveries)
    log: EpochLog = field(default_factory=EpochLog)
    """Durations and counts of the last epochs, for monitoring."""

    @classmethod
    def read(cls, store: ObjectStore, manifest: Manifest | None, buckets: int, planned: Planner) -> Version:
        """Decode a manifest; None gives the version of a new flow. Raises `StateError` if a field is malformed."""
        if manifest is None:
            return cls(None, Catalog(), planned(Catalog(), {}), State(buckets))
        extra = manifest.extra
        with decoding(manifest):
            catalog = Catalog.from_json(manifest.catalog)
            statistics = {name: Statistics(*counts) for name, counts in extra["statistics"].items()}
            committed: dict[str, Any] = {
                "state": State.from_json(manifest.spines).cut(buckets),
                "timeline": Timeline.from_json(extra["timeline"]),
                "created": dict(extra["created"]),
                "positions": Positions.from_json(extra["positions"]),
                "attached": dict(extra["attached"]),
                "sinks": {name: AttachedSink(*entry) for name, entry in extra.get("sinks", {}).items()},
                "delivered": recorded(store, manifest),
                "watermarks": Watermarks.from_json(extra["watermarks"]),
                "deliveries": Deliveries.from_json(extra["deliveries"]),
                "log": EpochLog.from_json(extra.get("log", [])),
            }
        return cls(manifest, catalog, planned(catalog, statistics), **committed)

    @property
    def epoch(self) -> int:
        """The last committed epoch; −1 before the first."""
        return -1 if self.manifest is None else self.manifest.epoch

    @property
    def writer_epoch(self) -> int:
        """The number of drivers that this flow had before the driver of the last commit."""
        return 0 if self.manifest is None else self.manifest.writer_epoch

    @property
    def dataflow(self) -> Dataflow:
        """The rounds of the next epoch."""
        return self.plan.dataflow

    @property
    def times(self) -> Times:
        """The values that formulas are evaluated with: watermarks and persisted values."""
        return self.watermarks.times

    @property
    def fed(self) -> set[str]:
        """The sources that have committed rows."""
        return set(self.deliveries.last)

    def with_delivered(self, identity: str, delivered: Delivered) -> Version:
        """Return the version with the progress of a sink after a delivery."""
        return replace(self, delivered={**self.delivered, identity: delivered})

    def settled(self, before: Version, epoch: int, time_ms: int) -> Version:
        """Return the version to commit after `before`, with new identities and without unused parts."""
        scans, views = self.plan.dataflow.scans, self.plan.dataflow.views
        watermarks = self.watermarks.restricted_to(scans, views)
        attached = {name: before.attached.get(name) or token(4) for name in scans}
        sinks = {sink.name: before.sinks.get(sink.name) or AttachedSink(token(4), epoch) for sink in self.catalog.sinks}
        deliveries = self.deliveries.restricted_to(scans)
        if self.plan is not before.plan:
            complete = complete_sources(self.plan, watermarks.times, deliveries)
            deliveries = deliveries.with_complete(complete, epoch, time_ms, self.plan.program)
        return replace(
            self,
            positions=self.positions.restricted_to(set(attached.values())),
            attached=attached,
            sinks=sinks,
            delivered={
                sink.identity: self.delivered[sink.identity]
                for sink in sinks.values()
                if sink.identity in self.delivered
            },
            watermarks=watermarks,
            deliveries=deliveries,
        )

    def to_json(self, *, since: int, wall: int | None) -> dict[str, Any]:
        """Return the fields of a manifest. History begins after epoch `since`; `wall` is the system clock."""
        statistics = self.plan.program.statistics
        return {
            "plan": fingerprint(self.plan.dataflow),
            "catalog": self.catalog.to_json(),
            "spines": self.state.to_json(),
            "extra": {
                "timeline": self.timeline.to_json(),
                "clock": wall,
                "created": dict(self.created),
                "positions": self.positions.to_json(),
                "attached": dict(self.attached),
                "sinks": {name: [sink.identity, sink.since] for name, sink in self.sinks.items()},
                "delivered": to_json(self.delivered),
                "statistics": {name: [counts.rows, counts.keys] for name, counts in statistics.items()},
                "since": since,
                "watermarks": self.watermarks.to_json(),
                "deliveries": self.deliveries.to_json(),
                "log": self.log.to_json(),
            },
        }


def named_files(manifest: Manifest) -> set[str]:
    """Return the names of all objects that a manifest references."""
    files = State.from_json(manifest.spines).files() | Timeline.from_json(manifest.extra["timeline"]).files()
    files |= position_files(manifest.extra["positions"])
    return files | {progress_file(manifest)} if manifest.extra.get("sinks") else files


def fingerprint(dataflow: Dataflow) -> str:
    """Return a short hash of the arrangements and views. It does not depend on paths, which need no new state."""
    text = "\n".join([*sorted(a.id for a in dataflow.arrangements), *sorted(dataflow.views)])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

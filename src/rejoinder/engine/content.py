"""The content of a manifest in the types of the engine: everything that a flow has committed.

`Content.read` and `Content.to_json` mirror each other. The engine publishes a content before it adopts it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from rejoinder.host.entropy import token
from rejoinder.ir.catalog import Catalog
from rejoinder.plan.join.delta_paths import Statistics
from rejoinder.plan.physical.dataflow import Dataflow
from rejoinder.plan.planning import Plan
from rejoinder.state.completeness import complete_sources
from rejoinder.state.deliveries import Deliveries
from rejoinder.state.flow_state import State
from rejoinder.state.manifest_decoding import checked_positions, decoding
from rejoinder.state.positions import position_files, restrict_positions
from rejoinder.state.sink_progress import Delivered, progress_file, recorded, to_json
from rejoinder.state.timeline import Timeline
from rejoinder.state.watermarks import Watermarks
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.object_store import ObjectStore

Planner = Callable[[Catalog, Mapping[str, Statistics]], Plan]


@dataclass(frozen=True)
class Content:
    """The committed state of a flow."""

    catalog: Catalog
    plan: Plan
    """Planned with the statistics of the last definition: others could need arrangements that do not exist."""
    state: State
    timeline: Timeline
    """When each epoch was committed."""
    created: dict[str, int]
    """The epoch at which each view was defined."""
    positions: dict[str, Any]
    """The position of each stream of a source (`state.positions`)."""
    attached: dict[str, str]
    """The identity of each source that is read."""
    sinks: dict[str, tuple[str, int]]
    """The identity of each sink, and the epoch in which it was defined."""
    delivered: dict[str, Delivered]
    """The progress of each sink, by its identity."""
    watermarks: Watermarks
    deliveries: Deliveries

    @classmethod
    def read(cls, store: ObjectStore, manifest: Manifest | None, buckets: int, planned: Planner) -> Content:
        """Decode a manifest; None gives the content of a new flow. Raises `StateError` if a field is malformed."""
        if manifest is None:
            state, watermarks, deliveries = State(buckets), Watermarks(), Deliveries()
            return cls(Catalog(), planned(Catalog(), {}), state, Timeline(), {}, {}, {}, {}, {}, watermarks, deliveries)
        extra = manifest.extra
        with decoding(manifest):
            catalog = Catalog.from_json(manifest.catalog)
            statistics = {name: Statistics(*counts) for name, counts in extra["statistics"].items()}
            committed: dict[str, Any] = {
                "state": State.from_json(manifest.spines).cut(buckets),
                "timeline": Timeline.from_json(extra["timeline"]),
                "created": dict(extra["created"]),
                "positions": checked_positions(manifest),
                "attached": dict(extra["attached"]),
                "sinks": {name: (identity, since) for name, (identity, since) in extra.get("sinks", {}).items()},
                "delivered": recorded(store, manifest),
                "watermarks": Watermarks.from_json(extra["watermarks"]),
                "deliveries": Deliveries.from_json(extra["deliveries"]),
            }
        return cls(catalog=catalog, plan=planned(catalog, statistics), **committed)

    def settled(self, before: Content, epoch: int, time_ms: int) -> Content:
        """Return the content to commit after `before`, with new identities and without unused parts."""
        scans, views = self.plan.dataflow.scans, self.plan.dataflow.views
        watermarks = self.watermarks.restricted_to(scans, views)
        attached = {name: before.attached.get(name) or token(4) for name in scans}
        sinks = {sink.name: before.sinks.get(sink.name) or (token(4), epoch) for sink in self.catalog.sinks}
        deliveries = self.deliveries.restricted_to(scans)
        if self.plan is not before.plan:
            complete = complete_sources(self.plan, watermarks.times, deliveries)
            deliveries = deliveries.with_complete(complete, epoch, time_ms, self.plan.program)
        return replace(
            self,
            positions=restrict_positions(self.positions, set(attached.values())),
            attached=attached,
            sinks=sinks,
            delivered={
                identity: self.delivered[identity] for identity, _ in sinks.values() if identity in self.delivered
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
                "created": self.created,
                "positions": self.positions,
                "attached": self.attached,
                "sinks": self.sinks,
                "delivered": to_json(self.delivered),
                "statistics": {name: [counts.rows, counts.keys] for name, counts in statistics.items()},
                "since": since,
                "watermarks": self.watermarks.to_json(),
                "deliveries": self.deliveries.to_json(),
            },
        }


_FIELDS = tuple(field.name for field in fields(Content))


class ContentHolder:
    """Has the committed content as its own attributes. `Content` describes them."""

    catalog: Catalog
    plan: Plan
    state: State
    timeline: Timeline
    created: dict[str, int]
    positions: dict[str, Any]
    attached: dict[str, str]
    sinks: dict[str, tuple[str, int]]
    delivered: dict[str, Delivered]
    watermarks: Watermarks
    deliveries: Deliveries

    @property
    def content(self) -> Content:
        """The committed content."""
        return Content(**{name: getattr(self, name) for name in _FIELDS})

    def take_over(self, content: Content) -> None:
        """Replace the committed content."""
        for name in _FIELDS:
            setattr(self, name, getattr(content, name))


def named_files(manifest: Manifest) -> set[str]:
    """Return the names of all objects that a manifest references."""
    files = State.from_json(manifest.spines).files() | Timeline.from_json(manifest.extra["timeline"]).files()
    files |= position_files(manifest.extra["positions"])
    return files | {progress_file(manifest)} if manifest.extra.get("sinks") else files


def fingerprint(dataflow: Dataflow) -> str:
    """Return a short hash of the arrangements and views. It does not depend on paths, which need no new state."""
    text = "\n".join([*sorted(a.id for a in dataflow.arrangements), *sorted(dataflow.views)])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

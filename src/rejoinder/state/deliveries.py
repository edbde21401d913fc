"""Deliveries of each source: its last epoch with rows, its last late row, and since when it is incomplete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rejoinder.plan.blocks.lineage import sources_of
from rejoinder.plan.rounds.program import Program


@dataclass(frozen=True)
class Incompleteness:
    """Since when no arrangement has all rows of a source: the epoch, its time, and the views that read it then."""

    epoch: int
    time_ms: int
    views: tuple[str, ...]


def _readers(source: str, program: Program) -> tuple[str, ...]:
    """Return the views that read a source, or some of its rows."""
    return tuple(name for name, block in program.views.items() if source in sources_of(block, program.relations))


@dataclass(frozen=True)
class Deliveries:
    """By source: `last` epoch with rows, last epoch in which a `late` row was left out, since when it is `incomplete`.

    A source that no view reads has no entries. If a view reads it again, it is read from its start.
    """

    last: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    incomplete: Mapping[str, Incompleteness] = field(default_factory=dict)

    def after(
        self, epoch: int, rows: Mapping[str, int], late: Mapping[str, Mapping[str, int]], program: Program
    ) -> Deliveries:
        """Return a copy after an epoch, with the number of rows by source and of late rows by view."""
        delivered = {name: epoch for name, count in rows.items() if count}
        missed = [view for view, counts in late.items() if view in program.views and any(counts.values())]
        blocks = [program.views[view] for view in missed]
        left_out = {name: epoch for block in blocks for name in sources_of(block, program.relations)}
        if not delivered and not left_out:
            return self
        return replace(self, last={**self.last, **delivered}, late={**self.late, **left_out})

    def restricted_to(self, sources: Iterable[str]) -> Deliveries:
        """Return a copy with these sources only."""
        read = set(sources)
        return Deliveries(
            {name: epoch for name, epoch in self.last.items() if name in read},
            {name: epoch for name, epoch in self.late.items() if name in read},
            {name: since for name, since in self.incomplete.items() if name in read},
        )

    def with_complete(self, complete: Mapping[str, bool], epoch: int, time_ms: int, program: Program) -> Deliveries:
        """Return a copy after a definition; `complete` tells by source whether its rows are complete now."""
        incomplete = {
            name: self.incomplete.get(name) or Incompleteness(epoch, time_ms, _readers(name, program))
            for name, is_complete in complete.items()
            if not is_complete
        }
        return replace(self, incomplete=incomplete)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        incomplete = {name: [since.epoch, since.time_ms, list(since.views)] for name, since in self.incomplete.items()}
        return {"last": dict(self.last), "late": dict(self.late), "incomplete": incomplete}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Deliveries:
        """Decode the result of `to_json`."""
        incomplete = {
            name: Incompleteness(epoch, time_ms, tuple(views))
            for name, (epoch, time_ms, views) in data["incomplete"].items()
        }
        return cls(data["last"], data["late"], incomplete)

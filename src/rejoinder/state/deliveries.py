"""What each source has delivered so far, and since when some of it is missing: a part of the commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rejoinder.plan.blocks.lineage import sources_of
from rejoinder.plan.rounds.program import Program


@dataclass(frozen=True)
class Incompleteness:
    """Since when no arrangement holds all rows of a source: the epoch, its time, and the views that read it then."""

    epoch: int
    time_ms: int
    views: tuple[str, ...]


def _readers(source: str, program: Program) -> tuple[str, ...]:
    """The views that read a source, or some of its rows."""
    return tuple(name for name, block in program.views.items() if source in sources_of(block, program.relations))


@dataclass(frozen=True)
class Deliveries:
    """By source: the last epoch that brought rows, the last in which a late row was left out, since when it has gaps.

    A source that nobody reads any more has none of these: it is read from its start when somebody does.
    """

    last: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    incomplete: Mapping[str, Incompleteness] = field(default_factory=dict)

    def after(
        self, epoch: int, rows: Mapping[str, int], late: Mapping[str, Mapping[str, int]], program: Program
    ) -> Deliveries:
        """The same after an epoch with so many rows by source, and with late rows by view."""
        delivered = {name: epoch for name, count in rows.items() if count}
        missed = [view for view, counts in late.items() if view in program.views and any(counts.values())]
        blocks = [program.views[view] for view in missed]
        left_out = {name: epoch for block in blocks for name in sources_of(block, program.relations)}
        if not delivered and not left_out:
            return self
        return replace(self, last={**self.last, **delivered}, late={**self.late, **left_out})

    def keeping(self, sources: Iterable[str]) -> Deliveries:
        """Only what concerns sources that are read."""
        read = set(sources)
        return Deliveries(
            {name: epoch for name, epoch in self.last.items() if name in read},
            {name: epoch for name, epoch in self.late.items() if name in read},
            {name: each for name, each in self.incomplete.items() if name in read},
        )

    def noting(self, complete: Mapping[str, bool], epoch: int, time_ms: int, program: Program) -> Deliveries:
        """The same after a definition, by which some sources are held completely and others are not."""
        found = {
            name: self.incomplete.get(name) or Incompleteness(epoch, time_ms, _readers(name, program))
            for name, is_complete in complete.items()
            if not is_complete
        }
        return replace(self, incomplete=found)

    def to_json(self) -> dict[str, Any]:
        """Give plain data for the manifest."""
        incomplete = {name: [each.epoch, each.time_ms, list(each.views)] for name, each in self.incomplete.items()}
        return {"last": dict(self.last), "late": dict(self.late), "incomplete": incomplete}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Deliveries:
        """Read what `to_json` gave."""
        incomplete = {
            name: Incompleteness(epoch, time_ms, tuple(views))
            for name, (epoch, time_ms, views) in data["incomplete"].items()
        }
        return cls(data["last"], data["late"], incomplete)

"""The physical plan: everything an epoch does, as frozen data. It travels to the workers; nobody decides there.

An epoch is a sequence of *rounds*. Round 0 reads the sources; each later round runs once per *bucket* (a range of key
hashes) on what earlier rounds sent to it through *channels*. Within a round, *steps* run in order on named *streams*
(deltas held by the task). The steps are in `plan.physical.steps`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from rejoinder.ir.catalog import Source
from rejoinder.ir.identities import Defined, RelationId
from rejoinder.plan.blocks.normal_form import Mode
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.retention_bound import Retention
from rejoinder.plan.physical.steps import Channel, Enrich, Send, Step


@dataclass(frozen=True)
class SourceScan:
    """Read the new splits of a source."""

    source: Source
    stream: str


@dataclass(frozen=True)
class ArrangementScan:
    """Read the present content of an arrangement, to hydrate new views and arrangements."""

    arrangement: Arrangement
    stream: str


@dataclass(frozen=True)
class ChangelogScan:
    """Read the present content of a view from its changelog, to hydrate what reads the view."""

    view: str
    stream: str


@dataclass(frozen=True)
class UnitScan:
    """Read the relation of one row, to hydrate an aggregate without keys."""

    stream: str


@dataclass(frozen=True)
class DueScan:
    """Read the changes of a view that became due: released after `after` and up to `until`."""

    pending: Arrangement
    stream: str
    after: int
    until: int


Purpose = Literal["index", "retain", "primary key", "source", "deletes"]
User = Defined | Purpose
"""What an arrangement is kept for: the lookups of a view or derived relation, or another purpose."""
Scan = SourceScan | ArrangementScan | ChangelogScan | UnitScan | DueScan


@dataclass(frozen=True)
class PathHop:
    """A lookup as people see it.

    Texts: `within` is what the order column is asked for, `filter` which rows can be met, `guard` which rows may meet
    one, `condition` which pairs are kept.
    """

    arrangement: str
    key: str
    relation: RelationId
    after: bool
    mode: Mode = "inner"
    within: str = ""
    filter: str = ""
    guard: str = ""
    condition: str = ""
    arrival: bool = False


@dataclass(frozen=True)
class Path:
    """How one input's changes reach a view: for EXPLAIN; the steps carry it out.

    `covers`: the input pads the times before its first version. `has_pairs`: conditions on pairs decide which rows have
    a partner.
    """

    view: Defined
    start: RelationId
    hops: tuple[PathHop, ...]
    mode: Mode = "inner"
    condition: str = ""
    covers: bool = False
    has_pairs: bool = False


@dataclass(frozen=True)
class Dataflow:
    """All rounds of an epoch, for all views at once."""

    scans: dict[str, Scan] = field(default_factory=dict)
    rounds: tuple[tuple[Step, ...], ...] = ((),)
    arrangements: tuple[Arrangement, ...] = ()
    users: dict[str, tuple[User, ...]] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    views: dict[str, pa.Schema] = field(default_factory=dict)
    retentions: dict[str, Retention] = field(default_factory=dict)
    source_changes: frozenset[str] = frozenset()
    """The `views` that are the changes of sources that keep them. They are not shown."""

    def steps(self) -> Iterator[Step]:
        """All steps, round by round."""
        for steps in self.rounds:
            yield from steps

    @property
    def functions(self) -> frozenset[str]:
        """The functions of the user's that are called, by name."""
        return frozenset(step.function.name for step in self.steps() if isinstance(step, Enrich))

    @property
    def channels(self) -> dict[int, Channel]:
        """Channels by number."""
        return {step.channel.number: step.channel for step in self.steps() if isinstance(step, Send)}

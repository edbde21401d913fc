"""The physical plan: everything that an epoch does, as frozen data. Workers execute it and decide nothing.

An epoch is a sequence of *rounds*. Round 0 reads the sources; each later round runs once per *bucket* (a range of key
hashes) on the rows that earlier rounds sent to it through *channels*. Within a round, *steps* run in order on named
*streams* (the deltas that a task has in memory). The steps are in `plan.physical.steps`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import pyarrow as pa

from rejoinder.ir.catalog import Source
from rejoinder.ir.identities import Defined, RelationId
from rejoinder.plan.blocks.normal_form import Mode
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.called_functions import called_in
from rejoinder.plan.physical.retention_bound import Retention
from rejoinder.plan.physical.steps import Channel, Enrich, Send, Step


@dataclass(frozen=True)
class SourceScan:
    """Read the new splits of a source."""

    source: Source
    stream: str
    columns: frozenset[str] | None = None
    """The columns that some step reads; None: all. A format that stores columns apart decodes only these."""


@dataclass(frozen=True)
class ArrangementScan:
    """Read the current content of an arrangement, to hydrate new views and arrangements."""

    arrangement: Arrangement
    stream: str


@dataclass(frozen=True)
class ChangelogScan:
    """Read the current content of a view from its changelog, to hydrate its readers."""

    view: str
    stream: str
    is_retracted: bool = False
    """Whether the rows are retracted, to subtract the content from another one."""


@dataclass(frozen=True)
class UnitScan:
    """Read the relation that has one row without columns, to hydrate an aggregate without keys."""

    stream: str


@dataclass(frozen=True)
class DueScan:
    """Read the pending changes of a view that became due."""

    pending: Arrangement
    stream: str
    after: int
    """Changes with an emit time up to this were emitted before."""
    until: int
    """The latest emit time that is due."""


Purpose = Literal["index", "retain", "primary key", "source", "deletes"]
User = Defined | Purpose
"""What an arrangement is kept for: the lookups of a view or derived relation, or another purpose."""
Scan = SourceScan | ArrangementScan | ChangelogScan | UnitScan | DueScan


@dataclass(frozen=True)
class PathHop:
    """A lookup of a delta path, as EXPLAIN shows it."""

    arrangement: str
    key: str
    relation: RelationId
    after: bool
    """Whether the arrangement is read with this epoch's changes."""
    mode: Mode = "inner"
    within: str = ""
    """The range of the order column, as text."""
    filter: str = ""
    """Which rows of the arrangement can match, as text."""
    guard: str = ""
    """Which rows of the stream can match, as text."""
    condition: str = ""
    """Which pairs are kept, as text."""
    arrival: bool = False
    """Whether this is a join at arrival."""


@dataclass(frozen=True)
class Path:
    """The delta path of one input, as EXPLAIN shows it. The steps of the dataflow execute it."""

    view: Defined
    start: RelationId
    """The input."""
    hops: tuple[PathHop, ...]
    mode: Mode = "inner"
    """How the input itself is joined."""
    condition: str = ""
    """Which rows of the input take part, as text."""
    covers: bool = False
    """Whether the path also carries the padding of times before the first version (`Coverage`)."""
    updates_match_status: bool = False
    """Whether the path updates the match status of left rows (`MatchStatus`)."""


@dataclass(frozen=True)
class Dataflow:
    """All rounds of an epoch, for all views of a flow."""

    scans: dict[str, Scan] = field(default_factory=dict)
    """What round 0 reads, by relation."""
    rounds: tuple[tuple[Step, ...], ...] = ((),)
    """The steps of each round, in order."""
    arrangements: tuple[Arrangement, ...] = ()
    users: dict[str, tuple[User, ...]] = field(default_factory=dict)
    """What uses an arrangement, by its id."""
    paths: tuple[Path, ...] = ()
    """The delta paths, for EXPLAIN."""
    views: dict[str, pa.Schema] = field(default_factory=dict)
    """The columns of each view and side output."""
    retentions: dict[str, Retention] = field(default_factory=dict)
    """When rows of an arrangement expire, by its id; they never expire where there is none."""
    source_changes: frozenset[str] = frozenset()
    """The `views` that are the changes of sources that keep them. They are not shown."""

    def steps(self) -> Iterator[Step]:
        """Yield all steps, round by round."""
        for steps in self.rounds:
            yield from steps

    @cached_property
    def functions(self) -> frozenset[str]:
        """Return the functions of the user that are called, as `module:function`."""
        enriching = (step.function.name for step in self.steps() if isinstance(step, Enrich))
        return frozenset((*enriching, *called_in((self.scans, self.rounds, self.retentions))))

    @cached_property
    def channels(self) -> dict[int, Channel]:
        """Return the channels by number."""
        return {step.channel.number: step.channel for step in self.steps() if isinstance(step, Send)}

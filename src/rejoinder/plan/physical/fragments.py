"""What those who add steps to a dataflow share: fragments of changes, and what they ask of the builder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rejoinder.ir.identities import OperationInput, RelationId, SideOutput
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.dataflow import Path
from rejoinder.plan.physical.steps import Step

if TYPE_CHECKING:
    from rejoinder.plan.blocks.normal_form import Derived
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.retention import Retentions


@dataclass(frozen=True)
class Fragment:
    """A part of a relation's change: the stream that carries it, from which round on, and how it is partitioned.

    `hashed`: the stream has the hash of the key that it is partitioned by.
    """

    round: int
    stream: str
    partition: str | None = None
    hashed: bool = False


class Rounds(Protocol):
    """The builder of a dataflow, as joins, groups, validity windows and the like see it."""

    program: Program
    fragments: dict[RelationId, list[Fragment]]
    side_outputs: dict[SideOutput, list[Fragment]]
    needed: dict[RelationId, dict[str, Arrangement]]
    arranged: dict[str, int]
    paths: list[Path]
    labels: Labels
    retentions: Retentions

    def add(self, number: int, step: Step) -> None: ...
    def stream(self, label: object) -> str: ...
    def send(
        self,
        fragments: Iterable[Fragment],
        key: Key,
        number: int,
        label: object,
        *,
        matching_only: bool,
        everywhere: bool = False,
    ) -> Fragment: ...
    def deliver(self, relation: RelationId, key: Key) -> Fragment: ...
    def arrange(self, relation: RelationId, *, check: bool) -> None: ...

    def branches(self, made: Derived) -> list[list[Fragment]]:
        """The changes of each block of a derived relation; in a hydration, all its rows."""

    def collect_input(self, made: Derived) -> OperationInput:
        """Make the changes of all blocks known as one relation, and return it."""

    def stored(self, arrangement: Arrangement) -> Arrangement | None:
        """In a hydration: the arrangement as it was before, under a second name; None if there is none."""

"""Fragments of a relation's changes, and the interface of the dataflow builder for the code that adds steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
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
    """A part of a relation's changes. All fragments of a relation together are its changes."""

    round: int
    """The first round in which the stream exists."""
    stream: str
    partition: str | None = None
    """The text of the key by which the stream is partitioned; None: it is not."""
    hashed: bool = False
    """Whether the stream has the hash of that key."""


class Rounds(Protocol):
    """The dataflow builder, as joins and operations use it."""

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
    def keeps(self, arrangement: Arrangement) -> bool: ...
    def kept(self, arrangement: Arrangement) -> Arrangement: ...
    def arrange(self, relation: RelationId, *, check: bool) -> None: ...
    def restrict(self, relation: OperationInput, fragment: Fragment) -> None: ...

    def deliver(self, relation: RelationId, key: Key, columns: Collection[str] | None = None) -> Fragment:
        """Send all changes of a relation to the buckets of a key, with the columns that are read there; None: all."""

    def branches(self, made: Derived) -> list[list[Fragment]]:
        """Return the changes of each block of a derived relation; in a hydration, all its rows."""

    def collect_input(self, made: Derived, *, without: str | None = None) -> OperationInput:
        """Combine the changes of all blocks into one relation, and return it.

        An output `without` is not computed. Rows that are read from an arrangement have it all the same.
        """

    def stored(self, arrangement: Arrangement) -> Arrangement | None:
        """Return, in a hydration, the stored arrangement under a second name; None if there is none."""


def add_keyed_step(
    rounds: Rounds,
    made: Derived,
    inputs: RelationId,
    key: Key,
    step: Callable[[str, str], Step],
    *,
    is_keyed: bool = True,
    needed: str | None = None,
) -> None:
    """Add the step that makes a derived relation, in the buckets of a key, and its fragments and arrangements.

    `step` is called with the stream of the changes of `inputs` and with the stream that it makes, which is partitioned
    by the same key and has its hash if `is_keyed`. `needed` is a second stream of the step: the rows of the input that
    are arranged instead of all of them.
    """
    delivered = rounds.deliver(inputs, key)
    change = rounds.stream(made.id)
    rounds.add(delivered.round, step(delivered.stream, change))
    if needed is not None:
        rounds.restrict(made.input, Fragment(delivered.round, needed, key.text, hashed=True))
    rounds.arrange(inputs, check=False)
    partition = key.text if is_keyed else None
    rounds.fragments[made.id] = [Fragment(delivered.round, change, partition, hashed=is_keyed)]
    rounds.arrange(made.id, check=False)

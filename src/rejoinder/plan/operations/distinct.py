"""Distinct: each row of a block once. It keeps how many copies of each row there are, by the whole row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rejoinder.plan.blocks.normal_form import Derived
from rejoinder.plan.operations.operation import Operation, OwnState, StateText
from rejoinder.plan.physical import steps
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.fragments import Fragment, Rounds
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.frontier import Frontiers


@dataclass(frozen=True)
class Distinct(Operation):
    """Each row of the only block once; `words` says which rows these are, for EXPLAIN."""

    words: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """What is computed."""
        return "distinct"

    @property
    def keeps_state(self) -> bool:
        """Copies are counted."""
        return True

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        """The copies of each row."""
        return [OwnState(_copies(made), "copies", "how many copies of each row")]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of copies into changes of rows."""
        counts = _copies(made)
        at = rounds.deliver(rounds.collect_input(made), counts.key)
        change = rounds.stream(made.id)
        rounds.add(at.round, steps.Distinct(at.stream, change, counts, whole=whole))
        rounds.arrange(counts.relation, check=False)
        rounds.fragments[made.id] = [Fragment(at.round, change)]
        rounds.arrange(made.id, check=False)

    def is_append_only(self, *, input_is: bool) -> bool:
        """It is if its block is."""
        return input_is

    def change_frontiers(self, frontiers: Frontiers, made: Derived, names: Iterable[str]) -> list[dict[str, Formula]]:
        """A row changes with the first or last of its copies: those of the block."""
        return frontiers.change_sources(made, names)

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """All columns: equal rows have equal times."""
        return list(made.schema.names)

    @property
    def passes_padding(self) -> bool:
        """Rows stay as they are."""
        return True

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        """Which rows, each once."""
        if self.words:
            return f"{self.words}, each once: {blocks[0]}"
        return f"each row once: {', '.join(columns)} of {blocks[0]}"

    @property
    def certificate(self) -> StateText | None:
        """Copies expire by an event time among the columns."""
        return StateText("DISTINCT", "a row", "SELECT an event time, or a window of one, among the distinct columns")


def _copies(made: Derived) -> Arrangement:
    return Arrangement.by_row(made.input, made.schema)

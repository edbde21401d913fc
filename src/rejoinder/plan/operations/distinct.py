"""Distinct: each row of a block once. It keeps how many copies of each row there are, by the whole row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rejoinder.plan.blocks.normal_form import Derived
from rejoinder.plan.operations.operation import Operation, OwnState, StateText
from rejoinder.plan.physical import steps
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.frontier import Frontiers


@dataclass(frozen=True)
class Distinct(Operation):
    """Each row of the only block once; `words` says which rows these are, for EXPLAIN."""

    words: str = field(default="", compare=False)

    text = "distinct"
    keeps_state = True
    passes_padding = True
    certificate = StateText("DISTINCT", "a row", "SELECT an event time, or a window of one, among the distinct columns")

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        return [OwnState(_copies(made), "copies", "how many copies of each row")]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of copies into changes of rows."""
        counts = _copies(made)

        def step(changes: str, result: str) -> steps.Distinct:
            return steps.Distinct(changes, result, counts, whole=whole)

        add_keyed_step(rounds, made, rounds.collect_input(made), counts.key, step, is_keyed=False)

    def is_append_only(self, *, input_is: bool) -> bool:
        """It is if its block is."""
        return input_is

    def change_frontiers(self, frontiers: Frontiers, made: Derived, names: Iterable[str]) -> list[dict[str, Formula]]:
        """A row changes with the first or last of its copies: those of the block."""
        return frontiers.change_sources(made, names)

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """All columns: equal rows have equal times."""
        return list(made.schema.names)

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        if self.words:
            return f"{self.words}, each once: {blocks[0]}"
        return f"each row once: {', '.join(columns)} of {blocks[0]}"


def _copies(made: Derived) -> Arrangement:
    return Arrangement.by_row(made.input, made.schema)

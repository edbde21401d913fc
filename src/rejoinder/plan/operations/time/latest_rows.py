"""Latest rows: the last row of each key, kept by key as a table with a primary key is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.ir import logical
from rejoinder.ir.identities import RelationId
from rejoinder.plan.blocks.normal_form import Block, Derived, derive, selected
from rejoinder.plan.operations.operation import Operation, OwnState
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step
from rejoinder.plan.physical.steps import Upsert

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program


@dataclass(frozen=True)
class Last(Operation):
    """The last row of each key: by `order`, if there is one, then by arrival."""

    key: tuple[str, ...]
    order: str | None

    keeps_state = True
    depends_on_past = True  # which row came last is not part of the rows
    changes_at_any_time = True  # the next row of a key replaces the last one, however old that is

    @property
    def text(self) -> str:
        return f"last by {', '.join(self.key)}" + (f" in the order of {self.order}" if self.order else "")

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        return [OwnState(self._rows(made))]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn rows into changes of the last rows."""
        rows = self._rows(made)

        def step(changes: str, result: str) -> Upsert:
            return Upsert(changes, result, rows, self.order, whole=whole)

        add_keyed_step(rounds, made, rounds.collect_input(made), rows.key, step)

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        labels = dict(zip(made.schema.names, columns, strict=True))
        keys = ", ".join(labels[name] for name in self.key)
        order = f" in the order of {labels[self.order]}" if self.order else ""
        return f"last row of {blocks[0]} for each {keys}{order}"

    def _rows(self, made: Derived) -> Arrangement:
        """The last rows by key, in which NULL is a value like any other."""
        return Arrangement(made.id, Key.of(made.schema, self.key), made.schema)


def latest(node: logical.Latest, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads the last rows of a block."""
    names = {i: f"c{at}" for at, (i, _) in enumerate(node.columns)}
    operation = Last(tuple(names[i] for i in node.key), None if node.order is None else names[node.order])
    return derive("last", operation, (selected(block, [i for i, _ in node.columns]),), node.columns, known)

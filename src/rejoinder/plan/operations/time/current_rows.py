"""Current rows: the rows of a block from a start until an end, by the processing time of the epochs.

It keeps when each row enters and leaves. An epoch emits the rows whose time has come since the epoch before it, and
drops them. A row that has left is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.identities import PendingRows, RelationId
from rejoinder.ir.logical import EMIT_AT
from rejoinder.plan.blocks.normal_form import Block, Derived, derive, selected
from rejoinder.plan.operations.operation import Operation, OwnState
from rejoinder.plan.physical import steps
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program

LEAVES = "__leaves"
"""Whether a row leaves at its time; else it enters."""


@dataclass(frozen=True)
class CurrentRows(Operation):
    """The rows of the only block while the clock is between their last columns: a start and an end, or one of them."""

    has_start: bool
    has_end: bool

    keeps_state = True
    changes_at_any_time = True  # a row leaves by the clock, whatever its event times are
    passes_padding = True

    @property
    def text(self) -> str:
        return f"current {self.has_start} {self.has_end}"

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        return [OwnState(self.pending(made), text="rows that enter or leave by the clock")]

    def clock_events(self, made: Derived) -> Arrangement | None:
        return self.pending(made)

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Emit rows that are current, and those that have become so or have ceased to be."""
        pending = self.pending(made)
        names = made.blocks[0].schema.names[len(made.schema) :]
        start = names[0] if self.has_start else None
        end = names[-1] if self.has_end else None

        def step(changes: str, result: str) -> steps.Current:
            return steps.Current(changes, result, pending, start, end, keeps=rounds.keeps(pending), whole=whole)

        add_keyed_step(rounds, made, rounds.collect_input(made), pending.key, step, is_keyed=False)

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        texts = [e.text for _, e in made.blocks[0].outputs[len(made.schema) :]]
        words = [f"from {texts[0]}"] if self.has_start else []
        words += [f"until {texts[-1]}"] if self.has_end else []
        return f"{blocks[0]}, each row {' '.join(words)} by the clock of the epochs"

    def pending(self, made: Derived) -> Arrangement:
        """The rows with the times at which they enter or leave, by row, in which NULL is a value like any other."""
        fields = [*made.schema, pa.field(EMIT_AT, pa.timestamp("us", tz="UTC")), pa.field(LEAVES, pa.bool_())]
        return Arrangement(PendingRows(str(made.id)), Key.of(made.schema), pa.schema(fields))


def current(node: logical.Current, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads the current rows of a block."""
    times = [i for i in (node.start, node.end) if i is not None]
    operation = CurrentRows(node.start is not None, node.end is not None)
    own = selected(block, [*(i for i, _ in node.columns), *times])
    return derive("current", operation, (own,), node.columns, known)

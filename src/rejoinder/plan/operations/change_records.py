"""Change records: the changes of a block as append-only rows. Stateless: changes of an epoch are consolidated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.ir import logical
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import RelationId
from rejoinder.plan.blocks.normal_form import RECORDED, Block, Derived, derive, selected
from rejoinder.plan.operations.operation import Operation
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step
from rejoinder.plan.physical.steps import Record

if TYPE_CHECKING:
    from rejoinder.plan.rounds.labels import Labels


@dataclass(frozen=True)
class Recording(Operation):
    """The changes of the only block as append-only rows."""

    text = "changes"
    depends_on_past = True  # earlier changes are not part of the present rows

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes into rows. The rows that a hydration starts from are changes of its epoch."""
        inputs, schema = rounds.collect_input(made), made.blocks[0].schema
        undo, epoch, time = made.schema.names[len(schema) :]

        def step(changes: str, rows: str) -> Record:
            return Record(changes, rows, undo, epoch, time)

        add_keyed_step(rounds, made, inputs, Arrangement.by_row(inputs, schema).key, step, is_keyed=False)

    def is_append_only(self, *, input_is: bool) -> bool:
        """A record stays."""
        return True

    def lineage(self, made: Derived, block: Block, name: str) -> list[Expression]:
        """Whether and when a row changes depends on all its columns."""
        outputs = dict(block.outputs)
        return [outputs[name]] if name in outputs else list(outputs.values())

    def column_labels(self, made: Derived, labels: Labels) -> dict[str, str]:
        """The columns of the block, and those of a record."""
        system = made.schema.names[len(made.blocks[0].outputs) :]
        return labels.outputs(made.blocks) | dict(zip(system, RECORDED, strict=True))

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        return f"changes of {blocks[0]} as rows"


def recorded(node: logical.Records, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads the changes of a block."""
    rows = selected(block, [i for i, _ in node.columns])
    return derive("changes", Recording(), (rows,), (*node.columns, *node.system), known)

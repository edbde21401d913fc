"""Enrichment: the rows of a block with the answers of a user function.

The function is called when a row arrives, and the row keeps its answer as long as it exists. So the state is the
enriched relation itself, by the columns of the row: a row that is retracted, or inserted a second time, has its stored
answer, whatever the function would return now. Rows that can neither be retracted nor looked up expire.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.function_reference import PythonFunction
from rejoinder.ir.identities import RelationId
from rejoinder.plan.blocks.normal_form import Block, Columns, Derived, derive, selected
from rejoinder.plan.operations.operation import Operation, OwnState
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step
from rejoinder.plan.physical.steps import Enrich

if TYPE_CHECKING:
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.rounds.program import Program


@dataclass(frozen=True)
class Enrichment(Operation):
    """The rows of the only block with the answers of a function, which sees the columns as `arguments`."""

    function: PythonFunction
    arguments: tuple[str, ...]
    answers: Columns

    keeps_state = True
    filters_late_rows = False  # answers are stored for retractions, and their expiry does not make rows late

    @property
    def text(self) -> str:
        answers = ", ".join(f"{name} {kind}" for name, kind in self.answers)
        return f"{self.function.text} of {', '.join(self.arguments)} gives {answers}"

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        return [OwnState(self._answered(made))]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of rows into changes of rows with answers. A hydration uses the answers that are stored."""
        answers, inputs = self._answered(made), rounds.collect_input(made)
        names = pa.schema([(name, made.schema.field(at).type) for at, name in enumerate(self.arguments)])
        columns = pa.schema(self.answers)
        views = rounds.program.readers(made.id)
        stored = rounds.stored(answers) if whole else answers
        before = answers if stored is None else stored

        def step(changes: str, result: str) -> Enrich:
            return Enrich(changes, result, before, self.function, names, columns, views, whole=stored is None)

        add_keyed_step(rounds, made, inputs, answers.key, step)

    def is_append_only(self, *, input_is: bool) -> bool:
        """It is if its block is."""
        return input_is

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """All columns of the row."""
        return [name for name, _ in made.blocks[0].outputs]

    def lineage(self, made: Derived, block: Block, name: str) -> list[Expression]:
        """An answer depends on all columns of the row."""
        outputs = dict(block.outputs)
        return [outputs[name]] if name in outputs else list(outputs.values())

    def column_labels(self, made: Derived, labels: Labels) -> dict[str, str]:
        """The columns of the row, and the names of the answers."""
        names = made.schema.names[len(self.arguments) :]
        answers = {name: answer for name, (answer, _) in zip(names, self.answers, strict=True)}
        return labels.outputs(made.blocks) | answers

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        return f"{blocks[0]} with {', '.join(name for name, _ in self.answers)} from {self.function.text}"

    def _answered(self, made: Derived) -> Arrangement:
        """The rows with their answers, by all columns of the row, in which NULL is a value like any other."""
        key = Key.of(made.schema, made.schema.names[: len(self.arguments)])
        return Arrangement(made.id, key, made.schema)


def enriched(node: logical.Enrich, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads a block's rows with their answers."""
    asked = selected(block, [i for i, _ in node.arguments])
    answers = tuple((i, kind) for i, _, kind in node.answers)
    operation = Enrichment(
        node.function,
        tuple(name for _, name in node.arguments),
        tuple((name, kind) for _, name, kind in node.answers),
    )
    return derive("enriched", operation, (asked,), (*asked.columns, *answers), known)

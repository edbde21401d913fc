"""At most one row per key: the value of a scalar subquery for each value of the columns that link it.

A second row is not an error yet: it counts only for an outer row that asks for the key (ADR 0041). So the relation has
one row for such a key too, with NULL in all other columns and TRUE in `many`, and an expression above the join fails on
it. The operation keeps the rows of its input by key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import RelationId
from rejoinder.plan.blocks.normal_form import Block, Derived, derive, selected
from rejoinder.plan.operations.operation import Operation, OwnState, StateText
from rejoinder.plan.physical import steps
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.frontier import Frontiers

MANY = "many"


@dataclass(frozen=True)
class AtMostOne(Operation):
    """One row for each value of the columns `key` of the only block."""

    key: tuple[str, ...]

    keeps_state = True
    combines_rows = True
    certificate = StateText("a scalar subquery", "a row", "link it with the outer query by an equality of event times")

    @property
    def text(self) -> str:
        return f"by {', '.join(self.key)}"

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        return [OwnState(self._rows(made), text="rows of the subquery")]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of rows into changes of keys."""
        rows = self._rows(made)

        def step(changes: str, result: str) -> steps.AtMostOne:
            return steps.AtMostOne(changes, result, rows, self.key, MANY, whole=whole)

        add_keyed_step(rounds, made, rounds.collect_input(made), rows.key, step)

    def frontier(self, frontiers: Frontiers, made: Derived, name: str) -> Formula | None:
        """Of the key, that of the rows; a second row changes all other columns."""
        return frontiers.of_input(made, name) if name in self.key else None

    def is_never_null(self, frontiers: Frontiers, made: Derived, name: str) -> bool:
        """Columns other than the key are NULL where there are several rows."""
        return name in self.key and super().is_never_null(frontiers, made, name)

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """The key: as long as it can get another row, its rows are needed."""
        return self.key

    def lineage(self, made: Derived, block: Block, name: str) -> list[Expression]:
        """Whether there are several rows depends on all columns, and so does every column but the key."""
        if name not in self.key:
            return [expression for _, expression in block.outputs]
        return super().lineage(made, block, name)

    def column_labels(self, made: Derived, labels: Labels) -> dict[str, str]:
        return labels.outputs(made.blocks) | {MANY: "more than one row"}

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        labels = dict(zip(made.schema.names, columns, strict=True))
        keys = ", ".join(labels[name] for name in self.key)
        return f"the only row of {blocks[0]}{f' for each {keys}' if keys else ''}"

    def _rows(self, made: Derived) -> Arrangement:
        """The rows of the input by key, in which NULL is a value like any other."""
        schema = made.blocks[0].schema
        return Arrangement(made.input, Key.of(schema, self.key), schema)


def at_most_one(node: logical.AtMostOne, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads the only rows of a block."""
    names = {i: f"c{at}" for at, (i, _) in enumerate(node.columns)}
    columns = (*node.columns, (node.many, pa.bool_()))
    schema = pa.schema([*((names[i], kind) for i, kind in node.columns), (MANY, pa.bool_())])
    operation = AtMostOne(tuple(names[i] for i in node.key))
    inner = selected(block, [i for i, _ in node.columns])
    return derive("single", operation, (inner,), columns, known, schema)

"""Validity windows: the rows of a relation with the time until which each is valid.

The state is the relation itself, by partition and ordered by time, so that the neighbours of a time are found in
O(log n), however many versions a partition has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.identities import RelationId
from rejoinder.plan.blocks.normal_form import Block, Derived, VersionColumns, derive
from rejoinder.plan.operations.operation import Operation, OwnState
from rejoinder.plan.operations.union import Union
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.dataflow import Path
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step
from rejoinder.plan.physical.steps import Validity

if TYPE_CHECKING:
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.frontier import Frontiers


@dataclass(frozen=True)
class Versions(Operation):
    """The rows of the only input and, in column `end`, the next later `time` among the rows of their `partition`."""

    columns: VersionColumns

    keeps_state = True
    changes_at_any_time = True  # the next version ends a window, however old its start is

    @property
    def text(self) -> str:
        return f"validity of {self.columns.time} by {', '.join(self.columns.partition)}"

    @property
    def versions(self) -> VersionColumns | None:
        return self.columns

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        return [OwnState(self._by_time(made))]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of the relation into changes of its rows with ends."""
        arrangement = self._by_time(made)
        if not whole:
            rounds.paths.append(Path(made.id, arrangement.relation, ()))

        def step(changes: str, result: str) -> Validity:
            return Validity(changes, result, arrangement, self.columns.end, whole=whole)

        add_keyed_step(rounds, made, arrangement.relation, arrangement.key, step)

    def is_never_null(self, frontiers: Frontiers, made: Derived, name: str) -> bool:
        """Not known: a window has an end that no row has."""
        return False

    def lineage(self, made: Derived, block: Block, name: str) -> list[Expression]:
        """The end of a window is the time of another row."""
        return super().lineage(made, block, self.columns.time if name == self.columns.end else name)

    def column_labels(self, made: Derived, labels: Labels) -> dict[str, str]:
        (only,) = made.blocks[0].inputs
        return {name: labels.column(only.relation, name) for _, name in only.columns}

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        labels = dict(zip(made.schema.names, columns, strict=True))
        by = ", ".join(labels[name] for name in self.columns.partition)
        start = labels[self.columns.time]
        return f"versions of {blocks[0]}{f' by {by}' if by else ''}, each valid from {start} to the next"

    def _by_time(self, made: Derived) -> Arrangement:
        """The relation by partition, ordered by time."""
        (only,) = made.blocks[0].inputs
        return Arrangement(only.relation, Key.of(only.schema, self.columns.partition), only.schema, self.columns.time)


def valid(node: logical.Validity, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads a block's rows with their ends. A relation that is read as it is needs no copy."""
    outputs = dict(block.outputs)
    named = [outputs[i] for i in (*node.partition, node.time)]
    if len(block.inputs) > 1 or block.predicates or not all(e.is_column for e in named):
        block = derive("rows", Union(), (block,), block.columns, known)
        outputs = dict(block.outputs)
    (only,) = block.inputs
    names = dict(only.columns)
    end = "end"
    while end in only.schema.names:
        end = f"_{end}"
    partition = tuple(names[outputs[i].columns[0]] for i in node.partition)
    versions = Versions(VersionColumns(partition, names[outputs[node.time].columns[0]], end))
    kind = only.schema.field(versions.columns.time).type
    columns = (*((i, only.schema.field(name).type) for i, name in only.columns), (node.end, kind))
    schema = pa.schema([*((name, only.schema.field(name).type) for _, name in only.columns), (end, kind)])
    whole = replace(block, outputs=tuple((i, column(i, only.schema.field(name).type)) for i, name in only.columns))
    windows = derive("validity", versions, (whole,), columns, known, schema)
    return replace(windows, outputs=(*block.outputs, (node.end, column(node.end, kind))))

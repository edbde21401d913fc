"""Grouping: one row per group of a block's rows, with accumulators of the calls. It keeps

- the groups themselves, one row each, by key: what an epoch adds to;
- for MIN and MAX the values, by key, if rows can be retracted: where the smallest goes, the next one is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.expressions.expression import Expression, column, literal
from rejoinder.ir.expressions.nodes import Literal
from rejoinder.ir.expressions.operators import compared
from rejoinder.ir.identities import UNIT, RelationId
from rejoinder.plan.blocks.accumulators import (
    ROWS,
    UNIT_SCHEMA,
    Accumulator,
    Layout,
    OrderColumns,
    empty_sort_key,
    lay_out,
)
from rejoinder.plan.blocks.normal_form import Block, Derived, Input, derive
from rejoinder.plan.operations.append_only import has_append_only_input
from rejoinder.plan.operations.operation import Operation, OwnState, StateText
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step
from rejoinder.plan.physical.steps import Aggregate
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.frontier import Frontiers


@dataclass(frozen=True)
class Grouping(Operation):
    """One row for each group of rows with equal keys: the keys, the number of rows, the accumulators."""

    keys: tuple[pa.DataType, ...]
    accumulators: tuple[Accumulator, ...]
    order: OrderColumns | None = field(default=None, kw_only=True)

    expires_by_key: ClassVar[bool] = True
    """Whether all rows of a group, old and new, expire together: then an expired group is never looked up."""
    keeps_state = True
    combines_rows = True
    passes_padding = True  # keys stay as they are
    certificate = StateText(
        "GROUP BY", "a group", "GROUP BY a window of an event time, such as TUMBLE(ts, INTERVAL 1 HOUR)"
    )

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns that make a group; they come first in the input too."""
        return tuple(f"c{at}" for at in range(len(self.keys)))

    @property
    def schema(self) -> pa.Schema:
        """The columns of a group's row."""
        fields = [*zip(self.key_names, self.keys, strict=True), (ROWS, pa.int64())]
        for each in self.accumulators:
            fields += [(each.name, each.type), *each.hidden.items()]
        return pa.schema(fields)

    @property
    def text(self) -> str:
        """Canonical text: equal for equal computations."""
        calls = ", ".join(each.canonical for each in self.accumulators)
        return f"by {len(self.keys)}: {calls}" + ("" if self.order is None else f" in the order of {self.order.key}")

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        """The groups, and values if an accumulator needs them."""
        groups, values = OwnState(self._groups(made), "groups"), self._values(made, program)
        result = [groups]
        if values is not None:
            result.append(OwnState(values, text="values, for when one is retracted"))
        if self.order is not None:
            result.append(OwnState(self._in_order(made, self.order), text="values in order"))
        return result

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of rows into changes of groups."""
        inputs = rounds.collect_input(made)
        groups = self._groups(made)

        def step(changes: str, result: str) -> Aggregate:
            return Aggregate(
                changes,
                result,
                groups,
                self.key_names,
                self.accumulators,
                self._values(made, rounds.program),
                rounds.program.readers(made.id),
                whole=whole,
                expiring=None if self.expires_by_key else rounds.retentions.of(groups),
                order=None if self.order is None else (self._in_order(made, self.order), self.order),
            )

        add_keyed_step(rounds, made, inputs, groups.key, step)

    def frontier(self, frontiers: Frontiers, made: Derived, name: str) -> Formula | None:
        """Of keys, that of the rows; accumulators have none."""
        return frontiers.of_input(made, name) if name in self.key_names else None

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """The keys: as long as a group can change, all values in it can be asked for."""
        return self.key_names

    def lineage(self, made: Derived, block: Block, name: str) -> list[Expression]:
        """An accumulator depends on all columns."""
        if name not in self.key_names:
            return [expression for _, expression in block.outputs]
        return super().lineage(made, block, name)

    def column_labels(self, made: Derived, labels: Labels) -> dict[str, str]:
        calls = {each.name: each.text for each in self.accumulators}
        return labels.outputs(made.blocks) | calls | {ROWS: "count(*)"}

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        """The keys and the calls. The start and the end of a window are one key."""
        ends = [label.removesuffix(".start").removesuffix(".end") for label in columns[: len(self.keys)]]
        keys = ", ".join(dict.fromkeys(ends))
        calls = ", ".join(["count(*)", *(each.text for each in self.accumulators)])
        if not keys:
            return f"all rows of {blocks[0]} as one group: {calls}"
        return f"groups of {blocks[0]} by {keys}: {calls}"

    def _groups(self, made: Derived) -> Arrangement:
        """The rows of the groups, by key, in which NULL is a value like any other."""
        return Arrangement(made.id, self._key(), made.schema)

    def _values(self, made: Derived, program: Program) -> Arrangement | None:
        """The input's rows, by key, if values must be found again when others are retracted."""
        has_extremes = any(a.function in ("min", "max") for a in self.accumulators)
        if not has_extremes or has_append_only_input(program, made):
            return None
        return Arrangement(made.input, self._key(), made.blocks[0].schema)

    def _in_order(self, made: Derived, order: OrderColumns) -> Arrangement:
        """The input's rows, by key and in order."""
        return Arrangement(made.input, self._key(), made.blocks[0].schema, order.key)

    def _key(self) -> Key:
        return Key.of(self.schema, self.key_names)


def _plain(keys: tuple[pa.DataType, ...], layout: Layout) -> Grouping:
    return Grouping(keys, layout.accumulators, order=layout.order)


def aggregated(
    node: logical.Aggregate,
    block: Block,
    known: dict[RelationId, Derived],
    make: Callable[[tuple[pa.DataType, ...], Layout], Grouping] = _plain,
) -> Block:
    """The block that reads the groups of a block's rows. Without keys, a row without values is always one of them."""
    layout = lay_out(node, dict(block.outputs))
    grouping = make(tuple(e.type for _, e in node.keys), layout)
    columns = tuple((layout.identifier(f.name), f.type) for f in grouping.schema)
    blocks: tuple[Block, ...] = (replace(block, outputs=layout.inputs),)
    if not node.keys:
        unordered = "" if layout.order is None else f"{layout.prefix}/{layout.order.key}"
        nothing = tuple((i, empty_sort_key() if i == unordered else literal(None, e.type)) for i, e in layout.inputs)
        blocks += (Block((Input(UNIT, (("unit.c0", "c0"),), UNIT_SCHEMA),), (), nothing),)
    groups = derive("aggregate", grouping, blocks, columns, known, grouping.schema)
    if node.keys:
        return replace(groups, outputs=layout.results)
    (rows,) = [i for i, name in groups.inputs[0].columns if name == ROWS]
    alone = Expression(compared(column(rows, pa.int64()).node, "=", Literal(1, pa.int64())), "no rows")
    return replace(groups, outputs=layout.results, optional=alone)

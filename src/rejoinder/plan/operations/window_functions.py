"""Window functions: the rows of a relation with values computed from the rows around them in their partition.

What is kept is the result itself, by partition and in order. So the values before an epoch are read, not computed, and
a running value goes on from the row before the first change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.expression import Expression, column
from rejoinder.ir.identities import RelationId
from rejoinder.ir.nodes import Call, Column
from rejoinder.ir.scalar_operation import ScalarOperation
from rejoinder.ir.window_calls import SortColumn, WindowCall
from rejoinder.kernels.windows.slices import COPY, ORDER
from rejoinder.plan.blocks.normal_form import Block, Derived, derive, selected
from rejoinder.plan.operations.operation import Operation, OwnState, StateText
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.fragments import Fragment, Rounds
from rejoinder.plan.physical.window_steps import Sorting, Window, result_schema
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.frontier import Frontiers


@dataclass(frozen=True)
class RowOrder:
    """The partition of rows and their order in it; `ties` order rows that are equal by `columns`."""

    partition: tuple[str, ...]
    columns: tuple[SortColumn, ...]
    ties: tuple[SortColumn, ...]

    @property
    def text(self) -> str:
        """Canonical text."""
        listed = ", ".join(f"{each.name} {each.text}" for each in (*self.columns, *self.ties))
        return f"by {', '.join(self.partition)} in the order of {len(self.columns)}: {listed}"

    def key(self, schema: pa.Schema) -> Key:
        """What rows are partitioned by; NULL is a value like any other."""
        parts = tuple(column(name, schema.field(name).type) for name in self.partition)
        return Key(parts, frozenset(range(len(parts))))

    def sorting(self, schema: pa.Schema) -> Sorting:
        """The sort keys of rows."""
        partition = tuple(SortColumn(name) for name in self.partition)
        group = (*partition, *self.columns)
        floors = (sort_key(each, schema) for each in (partition, group, (*group, *self.ties)))
        return Sorting(self.columns, *floors)

    def describe(self, labels: dict[str, str]) -> str:
        """The words of SQL."""
        by = ", ".join(labels[name] for name in self.partition)
        order = ", ".join(labels[each.name] + (" DESC" if each.descending else "") for each in self.columns)
        return f"{f' by {by}' if by else ''}{f' in the order of {order}' if order else ''}"


def sort_key(columns: Sequence[SortColumn], schema: pa.Schema) -> Expression:
    """Bytes that compare as rows do by columns: those of each column one after the other, so a prefix is a key too."""
    arguments = [Column(each.name, schema.field(each.name).type) for each in columns]
    operation = ScalarOperation("sort_key", tuple(each.text for each in columns), evaluation="all", nulls="never")
    return Expression(Call(operation, arguments, pa.binary()))


@dataclass(frozen=True)
class WindowFunctions(Operation):
    """The rows of the only block, their sort key, a number that tells equal rows apart, and the values of calls."""

    order: RowOrder
    calls: tuple[tuple[str, WindowCall], ...]

    @property
    def text(self) -> str:
        """What is computed."""
        calls = ", ".join(call.text for _, call in self.calls)
        return f"{calls}: {self.order.text}"

    @property
    def keeps_state(self) -> bool:
        """Rows are kept with their values."""
        return True

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        """The rows with their values, in order."""
        return [OwnState(self._in_order(made), text="rows with their values, in order")]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of rows into changes of rows with values."""
        inputs = rounds.collect_input(made)
        state = self._in_order(made)
        payload = made.blocks[0].schema
        at = rounds.deliver(inputs, state.key)
        change = rounds.stream(made.id)
        step = Window(
            at.stream,
            change,
            state,
            tuple(payload.names),
            self.order.sorting(payload),
            self.calls,
            rounds.program.readers(made.id),
            whole=whole,
        )
        rounds.add(at.round, step)
        rounds.fragments[made.id] = [Fragment(at.round, change, state.key.text, hashed=True)]
        rounds.arrange(made.id, check=False)

    def frontier(self, frontiers: Frontiers, made: Derived, name: str) -> Formula | None:
        """Of columns of the partition, that of the rows: whatever else a row has can change with its partition."""
        return frontiers.of_input(made, name) if name in self.order.partition else None

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """The partition: as long as it can change, all its rows can."""
        return self.order.partition

    def is_never_null(self, frontiers: Frontiers, made: Derived, name: str) -> bool:
        """As in the input; values of calls may be NULL."""
        return name in made.blocks[0].schema.names and super().is_never_null(frontiers, made, name)

    def lineage(self, made: Derived, block: Block, name: str) -> list[Expression]:
        """The value of a call depends on all columns."""
        if name not in block.schema.names:
            return [expression for _, expression in block.outputs]
        return super().lineage(made, block, name)

    def column_labels(self, made: Derived, labels: Labels) -> dict[str, str]:
        """Those of the rows, and the functions."""
        return labels.outputs(made.blocks) | {name: call.function for name, call in self.calls}

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        """The functions, the partition and the order."""
        labels = dict(zip(made.schema.names, columns, strict=True))
        calls = ", ".join(dict.fromkeys(_described(call, labels) for _, call in self.calls))
        return f"{calls} over {blocks[0]}{self.order.describe(labels)}"

    @property
    def certificate(self) -> StateText | None:
        """Rows expire by an event time in the partition."""
        return StateText(
            "PARTITION BY", "a partition", "PARTITION BY a window of an event time, such as TUMBLE(ts, INTERVAL 1 HOUR)"
        )

    def _in_order(self, made: Derived) -> Arrangement:
        return Arrangement(made.id, self.order.key(made.schema), made.schema, ORDER)


def _described(call: WindowCall, labels: dict[str, str]) -> str:
    argument = "*" if call.argument is None else labels[call.argument]
    return call.function if "rank" in call.function else f"{call.function}({argument})"


def windowed(node: logical.WindowCalls, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads the rows of a block with the values of window functions."""
    names = {identifier: f"c{at}" for at, (identifier, _) in enumerate(node.columns)}

    def named(columns: Sequence[SortColumn]) -> tuple[SortColumn, ...]:
        return tuple(replace(each, name=names[each.name]) for each in columns)

    order = RowOrder(tuple(names[i] for i in node.partition), named(node.order), named(node.ties))
    calls = tuple(
        (
            f"w{at}",
            replace(
                call,
                argument=None if call.argument is None else names[call.argument],
                default=None if call.default is None else names[call.default],
            ),
        )
        for at, (_, call) in enumerate(node.calls)
    )
    inner = selected(block, [identifier for identifier, _ in node.columns])
    fields = [(names[i], kind) for i, kind in node.columns]
    schema = pa.schema([*fields, (ORDER, pa.binary()), (COPY, pa.int64()), *result_schema(calls)])
    prefix = node.calls[0][0]
    identifiers = {name: i for i, name in names.items()} | {
        name: i for (i, _), (name, _) in zip(node.calls, calls, strict=True)
    }
    columns = tuple((identifiers.get(f.name, f"{prefix}/{f.name}"), f.type) for f in schema)
    made = derive("window", WindowFunctions(order, calls), (inner,), columns, known, schema)
    wanted = [i for i, _ in (*node.columns, *((i, call.type) for i, call in node.calls))]
    return selected(made, wanted)

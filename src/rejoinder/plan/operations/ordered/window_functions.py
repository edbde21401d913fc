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
from rejoinder.ir.expressions.expression import Expression, substitute
from rejoinder.ir.expressions.nodes import Call
from rejoinder.ir.expressions.scalar_operation import ScalarOperation
from rejoinder.ir.identities import RelationId
from rejoinder.ir.window_calls import SortColumn, WindowCall
from rejoinder.kernels.windows.slices import COPY, ORDER
from rejoinder.plan.blocks.normal_form import Block, Derived, derive, selected
from rejoinder.plan.operations.operation import Operation, OwnState
from rejoinder.plan.operations.ordered.first_rows import FirstRows
from rejoinder.plan.operations.ordered.ordered_operation import OrderedOperation
from rejoinder.plan.operations.ordered.row_order import RowOrder, described_calls, row_sort_key
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step
from rejoinder.plan.physical.window_steps import Window, result_schema

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program

_SHARDS = 64


@dataclass(frozen=True)
class WindowFunctions(OrderedOperation):
    """The rows of the only block, their sort key, a number that tells equal rows apart, and the values of calls."""

    @property
    def text(self) -> str:
        calls = ", ".join(call.text for _, call in self.calls)
        return f"{calls}: {self.order.text}"

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        return [OwnState(self._in_order(made), text="rows with their values, in order")]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of rows into changes of rows with values."""
        inputs = rounds.collect_input(made)
        state = self._in_order(made)
        payload = made.blocks[0].schema
        names, sorting, views = tuple(payload.names), self.order.sorting(payload), rounds.program.readers(made.id)

        def step(changes: str, result: str) -> Window:
            return Window(changes, result, state, names, sorting, self.calls, views, whole=whole)

        add_keyed_step(rounds, made, inputs, state.key, step)

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        labels = dict(zip(made.schema.names, columns, strict=True))
        calls = described_calls(self.calls, labels)
        return f"{calls} over {blocks[0]}{self.order.describe(labels)}"

    def _in_order(self, made: Derived) -> Arrangement:
        return Arrangement(made.id, self.order.key(made.schema), made.schema, ORDER)


def windowed(node: logical.WindowCalls, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The block that reads the rows of a block with the values of window functions.

    With a limit and no partition, the first rows of each shard come first: they are computed by all buckets.
    """
    if node.limit is not None and not node.partition:
        block = _of_shards(node, block, known)
    names = {identifier: f"c{at}" for at, (identifier, _) in enumerate(node.columns)}

    def named(columns: Sequence[SortColumn]) -> tuple[SortColumn, ...]:
        return tuple(replace(each, name=names[each.name]) for each in columns)

    order = RowOrder(tuple(names[i] for i in node.partition), named(node.order), named(node.ties))
    calls = tuple((f"w{at}", _with_names(call, names)) for at, (_, call) in enumerate(node.calls))
    inner = selected(block, [identifier for identifier, _ in node.columns])
    identifiers = {name: i for i, name in names.items()}
    identifiers |= {name: i for (i, _), (name, _) in zip(node.calls, calls, strict=True)}
    fields = [(names[i], kind) for i, kind in node.columns]
    operation: Operation = WindowFunctions(order, calls)
    if node.limit is None:
        fields += [(ORDER, pa.binary()), (COPY, pa.int64())]
    else:
        limited, most = node.limit
        partition = tuple(SortColumn(i) for i in node.partition)
        key = row_sort_key((*partition, *node.order, *node.ties), pa.schema(node.columns))
        inner = replace(inner, outputs=(*inner.outputs, (ORDER, substitute(key, dict(block.outputs)))))
        operation = FirstRows(order, calls, next(name for name, i in identifiers.items() if i == limited), most)
    schema = pa.schema([*fields, *result_schema(calls)])
    prefix = node.calls[0][0]
    columns = tuple((identifiers.get(f.name, f"{prefix}/{f.name}"), f.type) for f in schema)
    made = derive("window" if node.limit is None else "first", operation, (inner,), columns, known, schema)
    return selected(made, [*(i for i, _ in node.columns), *(i for i, _ in node.calls)])


def _of_shards(node: logical.WindowCalls, block: Block, known: dict[RelationId, Derived]) -> Block:
    """The rows that are among the first ones of their shard. No other row is among the first ones of all."""
    assert node.limit is not None
    name, most = node.limit
    shard, rank = f"{name}/shard", f"{name}/rank"
    outputs = dict(block.outputs)
    values = [outputs[i].node for i, _ in node.columns]
    operation = ScalarOperation("shard", (_SHARDS,), evaluation="all", nulls="never")
    number = Expression(Call(operation, values, pa.int32()), "shard")
    sharded = replace(block, outputs=(*((i, outputs[i]) for i, _ in node.columns), (shard, number)))
    first = replace(
        node,
        columns=(*node.columns, (shard, pa.int32())),
        partition=(shard,),
        calls=((rank, dict(node.calls)[name]),),
        limit=(rank, most),
    )
    return windowed(first, sharded, known)


def _with_names(call: WindowCall, names: dict[str, str]) -> WindowCall:
    argument, default = (None if i is None else names[i] for i in (call.argument, call.default))
    return replace(call, argument=argument, default=default)

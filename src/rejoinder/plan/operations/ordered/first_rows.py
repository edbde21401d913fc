"""First rows: of each partition, the rows up to a rank, with the values of window functions.

What is kept is the rows of the input, by partition and in order; the result needs no state of its own. Without a
partition, the first rows of each of some shards are computed first, by all buckets, and then the first rows of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.window_calls import WindowCall
from rejoinder.plan.blocks.normal_form import Block, Derived
from rejoinder.plan.operations.operation import Operation, OwnState, StateText
from rejoinder.plan.operations.ordered.row_order import RowOrder, described_calls, expiring_partition
from rejoinder.plan.physical import window_steps
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.fragments import Fragment, Rounds
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.frontier import Frontiers


@dataclass(frozen=True)
class FirstRows(Operation):
    """The rows of the only block for which the call `rank` is at most `most`, with the values of all calls.

    The last column of the block is the sort key. The result does not have it.
    """

    order: RowOrder
    calls: tuple[tuple[str, WindowCall], ...]
    rank: str
    most: int

    @property
    def text(self) -> str:
        """What is computed."""
        calls = ", ".join(call.text for _, call in self.calls)
        return f"first {self.most} by {self.rank} of {calls}: {self.order.text}"

    @property
    def keeps_state(self) -> bool:
        """Rows are kept: those that are not among the first ones can become so."""
        return True

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        """The rows in order."""
        return [OwnState(self._in_order(made), text="rows in order")]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of rows into changes of the first rows."""
        inputs = rounds.collect_input(made)
        state = self._in_order(made)
        *payload, order = made.blocks[0].schema.names
        at = rounds.deliver(inputs, state.key)
        change = rounds.stream(made.id)
        step = window_steps.FirstRows(
            at.stream,
            change,
            state,
            tuple(payload),
            self.order.sorting(state.schema),
            self.calls,
            self.rank,
            self.most,
            order,
            rounds.program.readers(made.id),
            whole=whole,
        )
        rounds.add(at.round, step)
        rounds.arrange(inputs, check=False)
        rounds.fragments[made.id] = [Fragment(at.round, change, state.key.text, hashed=True)]
        rounds.arrange(made.id, check=False)

    def frontier(self, frontiers: Frontiers, made: Derived, name: str) -> Formula | None:
        """Of columns of the partition, that of the rows."""
        return frontiers.of_input(made, name) if name in self.order.partition else None

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """The partition: as long as it can change, all its rows can be among the first ones."""
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
        """The limit, the partition and the order."""
        labels = dict(zip(made.schema.names, columns, strict=True))
        calls = described_calls(self.calls, labels)
        limited = "row" if dict(self.calls)[self.rank].function == "count" else dict(self.calls)[self.rank].function
        return f"rows of {blocks[0]} up to {limited} {self.most}{self.order.describe(labels)}: {calls}"

    @property
    def certificate(self) -> StateText | None:
        """Rows expire by an event time in the partition."""
        return expiring_partition()

    def _in_order(self, made: Derived) -> Arrangement:
        schema = made.blocks[0].schema
        return Arrangement(made.input, self.order.key(schema), schema, schema.names[-1])

"""First rows: of each partition, the rows up to a rank, with the values of window functions.

What is kept is the rows of the input, by partition and in order; the result needs no state of its own. Of an
append-only input, only the first rows are kept: a row that so many others precede never returns. Without a
partition, the first rows of each of some shards are computed first, by all buckets, and then the first rows of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.ir.window_calls import SortColumn
from rejoinder.plan.blocks.normal_form import Derived
from rejoinder.plan.operations.append_only import has_append_only_input
from rejoinder.plan.operations.operation import OwnState
from rejoinder.plan.operations.ordered.ordered_operation import OrderedOperation
from rejoinder.plan.operations.ordered.row_order import described_calls
from rejoinder.plan.physical import window_steps
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.fragments import Fragment, Rounds, add_keyed_step

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program


@dataclass(frozen=True)
class FirstRows(OrderedOperation):
    """The rows of the only block for which the call `rank` is at most `most`, with the values of all calls.

    The last column of the block is the sort key. The result does not have it.
    """

    rank: str
    most: int

    @property
    def text(self) -> str:
        calls = ", ".join(call.text for _, call in self.calls)
        return f"first {self.most} by {self.rank} of {calls}: {self.order.text}"

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        return [OwnState(self._in_order(made), text="rows in order")]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of rows into changes of the first rows."""
        state = self._in_order(made)
        *payload, order = made.blocks[0].schema.names
        drops_early = self._drops_early(rounds.program, made)
        # Sort keys are wide. Where one column is enough to drop rows, they are computed after the exchange.
        leading = self._leading(state) if drops_early else None
        inputs = rounds.collect_input(made, without=None if leading is None else order)
        if drops_early:
            rounds.fragments[inputs] = [
                self._partial(rounds, fragment, state, order, leading) for fragment in rounds.fragments[inputs]
            ]
        kept = rounds.stream(inputs) if has_append_only_input(rounds.program, made) else None

        def step(changes: str, result: str) -> window_steps.FirstRows:
            names, sorting = tuple(payload), self.order.sorting(state.schema)
            views, rank, most = rounds.program.readers(made.id), self.rank, self.most
            return window_steps.FirstRows(
                changes, result, state, names, sorting, self.calls, views, rank, most, order, kept, whole=whole
            )

        add_keyed_step(rounds, made, inputs, state.key, step, needed=kept)

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        labels = dict(zip(made.schema.names, columns, strict=True))
        calls = described_calls(self.calls, labels)
        limited = "row" if dict(self.calls)[self.rank].function == "count" else dict(self.calls)[self.rank].function
        return f"rows of {blocks[0]} up to {limited} {self.most}{self.order.describe(labels)}: {calls}"

    def _drops_early(self, program: Program, made: Derived) -> bool:
        """Whether a row is out as soon as so many others precede it: nothing is retracted, and rows are counted."""
        is_inner = all(each.mode == "inner" for each in made.blocks[0].inputs)
        return is_inner and has_append_only_input(program, made) and dict(self.calls)[self.rank].function == "count"

    def _leading(self, state: Arrangement) -> SortColumn | None:
        """The first column of ORDER BY, if it compares as an integer does."""
        first = next(iter(self.order.columns), None)
        if first is None:
            return None
        kind = state.schema.field(first.name).type
        is_number = pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
        return first if is_number else None

    def _partial(
        self, rounds: Rounds, fragment: Fragment, state: Arrangement, order: str, leading: SortColumn | None
    ) -> Fragment:
        """Drop rows of a fragment before they are sent. One that need not be sent is left as it is."""
        if fragment.partition in (state.key.text, state.key.with_nulls.text):
            return fragment
        stream = rounds.stream(state.relation)
        step = window_steps.PartialFirstRows(fragment.stream, stream, state.key, order, self.most, leading)
        rounds.add(fragment.round, step)
        return replace(fragment, stream=stream)

    def _in_order(self, made: Derived) -> Arrangement:
        schema = made.blocks[0].schema
        return Arrangement(made.input, self.order.key(schema), schema, schema.names[-1])

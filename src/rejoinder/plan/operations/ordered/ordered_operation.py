"""What operations on ordered partitions share: rows with values of window functions; they expire by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.window_calls import WindowCall
from rejoinder.plan.blocks.normal_form import Block, Derived
from rejoinder.plan.operations.operation import Operation, StateText
from rejoinder.plan.operations.ordered.row_order import RowOrder
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.time.frontier import Frontiers


@dataclass(frozen=True)
class OrderedOperation(Operation):
    """An operation on the only block, whose rows it keeps by partition and in order."""

    order: RowOrder
    calls: tuple[tuple[str, WindowCall], ...]
    """The columns of the result that are computed, and how."""

    keeps_state = True  # a change of one row can change the values and the ranks of others
    certificate = StateText(
        "PARTITION BY",
        "a partition",
        "PARTITION BY a window of an event time, such as TUMBLE(ts, INTERVAL 1 HOUR)",
    )

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

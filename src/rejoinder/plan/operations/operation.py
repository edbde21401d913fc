"""The protocol of an operation: what turns the rows of blocks into a derived relation.

An operation is frozen data, has its own file in this package, and answers all that the planner asks about it. The
planner knows this protocol only, so a new operation needs no change there. Each default is the answer of an operation
that passes rows on one by one and keeps no state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import RelationId
from rejoinder.plan.blocks.normal_form import Block, Columns, Derived, VersionColumns
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.fragments import Rounds
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.labels import Labels
    from rejoinder.plan.rounds.program import Program
    from rejoinder.plan.time.frontier import Frontiers

Content = Literal["rows", "copies", "groups"]


@dataclass(frozen=True)
class OwnState:
    """An arrangement that an operation needs for itself."""

    arrangement: Arrangement
    content: Content = "rows"
    """The kind of its rows in SHOW ARRANGEMENTS."""
    text: str = ""
    """Its content in EXPLAIN; empty: the rows of the relation."""


@dataclass(frozen=True)
class StateText:
    """What the bound certificate says about the state of an operation that expires by some of its columns."""

    clause: str
    """The clause that names these columns."""
    row: str
    """What a row of the state is."""
    edit: str
    """The edit that bounds the state if no such column has a watermark."""


class Operation(ABC):
    """What the planner asks of an operation. `made` is always the derived relation that the operation makes."""

    __slots__ = ()

    # -- identity -----------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def text(self) -> str:
        """Canonical text: equal for equal computations. The names of relations, and so their state, depend on it."""

    @property
    def versions(self) -> VersionColumns | None:
        """Return the columns of validity windows, if the relation has some."""
        return None

    # -- state and steps ----------------------------------------------------------------------------------------------

    keeps_state: ClassVar[bool] = False
    """Whether it keeps state of its own."""

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        """The arrangements that it needs for itself; none if it keeps no state."""
        return ()

    @abstractmethod
    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Add the steps that make the relation, and its fragments and arrangements, to a dataflow.

        `whole`: the input is all its rows, in a hydration; else it is the changes of an epoch.
        """

    # -- rows over time -----------------------------------------------------------------------------------------------

    def is_append_only(self, *, input_is: bool) -> bool:
        """Whether rows are never retracted, given whether those of its blocks are."""
        return False

    depends_on_past: ClassVar[bool] = False
    """Whether its rows cannot be computed from the present rows of its blocks."""

    changes_at_any_time: ClassVar[bool] = False
    """Whether a row can change at any time, whatever the event times in it."""

    combines_rows: ClassVar[bool] = False
    """Whether a row stands for several rows of a block."""

    skips_idle_blocks: ClassVar[bool] = False
    """Whether frontiers pass blocks whose sources are idle. Then `steps` has to filter rows that are late."""

    def frontier(self, frontiers: Frontiers, made: Derived, name: str) -> Formula | None:
        """The time below which no row with such a value in a column changes any more; None: there is none."""
        return None if self.changes_at_any_time else frontiers.of_input(made, name)

    def change_frontiers(self, frontiers: Frontiers, made: Derived, names: Iterable[str]) -> list[dict[str, Formula]]:
        """The frontiers of columns, for each independent source of changes."""
        return [{name: below for name in names if (below := frontiers.of(made.id, name)) is not None}]

    def is_never_null(self, frontiers: Frontiers, made: Derived, name: str) -> bool:
        """Whether a column is never NULL, because it is an event time of rows on time or made from one."""
        return frontiers.is_known_input(made, name)

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """The columns of its input by which its state expires: a row that is below all changes is not needed any more.

        Empty if its state never expires, or if it keeps none.
        """
        return ()

    def expiry(self, frontiers: Frontiers, made: Derived, names: Sequence[str]) -> list[dict[str, Formula]]:
        """The time below which a row of its state is no longer needed, by column, for each source of changes.

        One column is enough for a row to expire. `names` are some of `expiry_columns`.
        """
        return frontiers.change_sources(made, names)

    filters_late_rows: ClassVar[bool] = True
    """Whether state that expires is a reason to leave late rows out."""

    def clock_events(self, made: Derived) -> Arrangement | None:
        """The arrangement of rows that enter or leave by the clock; None if the clock changes nothing."""
        return None

    # -- columns ------------------------------------------------------------------------------------------------------

    def lineage(self, made: Derived, block: Block, name: str) -> list[Expression]:
        """The outputs of a block that a column is computed from."""
        return [block.outputs[made.schema.names.index(name)][1]]

    passes_padding: ClassVar[bool] = False
    """Whether columns that an outer join below pads with NULL are NULL in its rows."""

    @property
    def pads(self) -> bool:
        """Return whether a block has NULL in columns for rows without a match in another block."""
        return False

    # -- EXPLAIN ------------------------------------------------------------------------------------------------------

    def column_labels(self, made: Derived, labels: Labels) -> dict[str, str]:
        """What EXPLAIN calls the columns."""
        return labels.outputs(made.blocks)

    @abstractmethod
    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        """What EXPLAIN says the relation is, from the labels of its columns and the texts of its blocks."""

    @property
    def certificate(self) -> StateText | None:
        """What the bound certificate says about its state; None if conditions of joins alone bound it."""
        return None


class SetOperation(Operation):
    """An operation that a clause between two queries asks for, such as UNION ALL."""

    __slots__ = ()

    @property
    def is_distinct(self) -> bool:
        """Whether no two rows are equal."""
        return False

    @abstractmethod
    def read(self, blocks: tuple[Block, ...], columns: Columns, known: dict[RelationId, Derived]) -> Block:
        """The block that reads what it makes of blocks with the same columns; `columns` are those of the result."""


def depends_on_past(relations: Iterable[Derived]) -> bool:
    """Whether rows of some relation cannot be computed from the present rows of what it reads."""
    return any(
        made.operation.depends_on_past or any(each.arrival for block in made.blocks for each in block.inputs)
        for made in relations
    )

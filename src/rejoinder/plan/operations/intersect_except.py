"""INTERSECT and EXCEPT, with and without ALL: how often a row is in the result follows from its copies on both sides.

The rows of both sides are in one arrangement, by all columns; one more column has the side. NULL equals NULL.
A row depends on both sides, so a frontier is the minimum over both, also while the sources of one are idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.ir.expressions.expression import literal
from rejoinder.ir.identities import RelationId, column_part
from rejoinder.plan.blocks.normal_form import Block, Columns, Derived, derive
from rejoinder.plan.operations.operation import OwnState, SetOperation, StateText
from rejoinder.plan.physical import steps
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.fragments import Rounds, add_keyed_step

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program

_SIDES = (literal(True, pa.bool_()), literal(False, pa.bool_()))
"""Whether a row is from the left side."""


@dataclass(frozen=True)
class IntersectExcept(SetOperation):
    """The rows of the left block that the right one has too (INTERSECT), or has not (EXCEPT); `all` counts copies."""

    keeps: steps.Kept
    all: bool

    keeps_state = True
    passes_padding = True

    @property
    def text(self) -> str:
        return f"{self.keeps.upper()}{' ALL' if self.all else ''}"

    @property
    def is_distinct(self) -> bool:
        """It is without ALL."""
        return not self.all

    def read(self, blocks: tuple[Block, ...], columns: Columns, known: dict[RelationId, Derived]) -> Block:
        """The block that reads what two blocks have in common, or not."""
        side = column_part(columns[0][0], "side")
        sides = zip(blocks, _SIDES, strict=True)
        marked = tuple(replace(block, outputs=(*block.outputs, (side, is_left))) for block, is_left in sides)
        return derive(self.keeps, self, marked, columns, known)

    def state(self, made: Derived, program: Program) -> Sequence[OwnState]:
        """The copies of each row on both sides."""
        return [OwnState(_copies(made), "copies", "how many copies of each row each side has")]

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Turn changes of copies into changes of the result."""
        copies = _copies(made)

        def step(changes: str, result: str) -> steps.IntersectExcept:
            return steps.IntersectExcept(changes, result, copies, _side(made), self.keeps, self.all, whole=whole)

        add_keyed_step(rounds, made, rounds.collect_input(made), copies.key, step)

    def is_append_only(self, *, input_is: bool) -> bool:
        """INTERSECT is if both sides are; a row on the right side takes one from EXCEPT."""
        return input_is and self.keeps == "intersect"

    def expiry_columns(self, made: Derived) -> Sequence[str]:
        """All columns of the result: equal rows have equal times."""
        return list(made.schema.names)

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        left, right = blocks
        return f"{self.text}: {left}, and {right}"

    @property
    def certificate(self) -> StateText | None:
        """Copies expire by an event time among the columns, which both sides need."""
        return StateText(self.text, "a row", "SELECT an event time, or a window of one, on both sides")


def _copies(made: Derived) -> Arrangement:
    """The rows of both sides by the columns of the result, in which NULL is a value like any other."""
    return Arrangement(made.input, Key.of(made.schema), made.blocks[0].schema)


def _side(made: Derived) -> str:
    """Return the column with the side: the last one of the input."""
    return made.blocks[0].outputs[-1][0]

"""Union: all rows of all blocks. It keeps no state.

Also what a block cannot say by itself: a block as a relation of its own (`rows`), FULL joins, joins at arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rejoinder.ir.identities import RelationId, ViewRows
from rejoinder.plan.blocks.normal_form import Block, Columns, Derived, derive
from rejoinder.plan.operations.idle_unions import on_time_fragments
from rejoinder.plan.operations.operation import SetOperation
from rejoinder.plan.physical.fragments import Rounds


@dataclass(frozen=True)
class Union(SetOperation):
    """All rows of all blocks; `words` is the clause that makes it one, for EXPLAIN."""

    words: str = field(default="", compare=False)
    pads: bool = field(default=False, compare=False)

    text = "union"
    skips_idle_blocks = True  # a union does not wait for idle branches
    passes_padding = True

    def read(self, blocks: tuple[Block, ...], columns: Columns, known: dict[RelationId, Derived]) -> Block:
        """The block that reads the rows of several blocks."""
        return derive("union", self, blocks, columns, known)

    def steps(self, rounds: Rounds, made: Derived, *, whole: bool) -> None:
        """Take the changes of the blocks together. Rows that were delivered before a hydration are not late."""
        branches = rounds.branches(made)
        fragments = [fragment for branch in branches for fragment in branch]
        rounds.fragments[made.id] = fragments if whole else on_time_fragments(rounds, made, branches)
        rounds.arrange(made.id, check=False)

    def is_append_only(self, *, input_is: bool) -> bool:
        """It is if its blocks are."""
        return input_is

    def describe(self, made: Derived, columns: Sequence[str], blocks: Sequence[str]) -> str:
        """Its clause and its blocks; or what repeats the rows of its only block."""
        repeated = [e.text or "element" for block in made.blocks for _, e in block.outputs if e.repeats]
        if repeated:
            return f"{blocks[0]}, each row once for every {repeated[0]}"
        words = f"{self.words}: " if self.words else ""
        return words + ", and ".join(blocks)


def as_relation(view: str, block: Block) -> Derived:
    """A view that is read as it is, as a relation made from its block."""
    return Derived(ViewRows(view), (block,), Union(), block.schema)

"""A hop of a delta path: one lookup, and which rows it can find."""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.ir.expressions.expression import Expression, conjunction, renamed
from rejoinder.plan.blocks.normal_form import Block, Mode
from rejoinder.plan.join.join_graph import JoinGraph, inputs_of
from rejoinder.plan.physical.arrangement import Arrangement, Key

FROM, TO = "__from", "__to"
"""The columns that carry the bounds of a validity window whose changes start a path."""


@dataclass(frozen=True)
class Hop:
    """One lookup of a path."""

    input: int
    """The input that is looked up."""
    arrangement: Arrangement
    key: Key
    """The key of the lookup, over columns of the inputs met so far."""
    values: tuple[str, ...]
    """Names of the values of the key. A stream that is partitioned by the same values needs no exchange."""
    after: bool
    """Whether the lookup sees this epoch's changes of the input."""
    mode: Mode = "inner"
    guard: Expression | None = None
    """In a mode other than `inner`: rows for which it is not true have no match."""
    tests: tuple[Expression, ...] = ()
    """Conditions, apart from the block's own, that can be tested from this hop on."""
    between: tuple[Expression, Expression] | None = None
    """In an ordered arrangement: only rows whose order value is in this range."""
    latest: Expression | None = None
    """In an ordered arrangement: only rows with the latest order value up to this time."""
    strict: bool = False
    """Windows are open at their start and closed at their end, instead of the other way round."""
    near: tuple[Expression, int, int] | None = None
    """In an ordered arrangement: a time, and how far below and above it order values may be."""
    pairs: tuple[Expression, ...] = ()
    """Conditions on pairs that say which rows count as matches."""
    everywhere: bool = False
    """The rows met so far go to all buckets, since every row meets every row."""


def needed_rows(block: Block, graph: JoinGraph, hop: Hop) -> Expression | None:
    """A condition on rows of an arrangement without which a hop does not need them; None: it may need any row.

    A version that fails the condition still ends the version before it. So a hop to the latest version needs all.
    """
    if hop.latest is not None:
        return None
    own = [*graph.filters[hop.input], *(test for test in hop.tests if hop.mode == "inner")]
    plain = dict(block.inputs[hop.input].columns)
    alone = [test for test in own if test.columns and inputs_of(test) == {hop.input}]
    return conjunction([renamed(test, {i: plain[i] for i in test.columns}) for test in alone])

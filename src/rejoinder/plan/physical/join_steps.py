"""The steps of joins, as frozen data: lookups along a delta path, and the changes of padding and match status.

A column of pairs that is TRUE in matches and NULL in padding is named by `present`, if a step has one.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.ir.expressions.expression import Expression
from rejoinder.plan.blocks.normal_form import Mode
from rejoinder.plan.physical.arrangement import Arrangement, Key

_Outputs = tuple[tuple[str, Expression], ...]
_Names = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Lookup:
    """Join a stream with an arrangement by key: one hop of a delta path."""

    input: str
    output: str
    arrangement: Arrangement
    key: Key
    """The key of the stream; it corresponds to the key of the arrangement."""
    after: bool
    """Whether the arrangement is read with this epoch's changes. For each pair of inputs, one path reads the other
    input before and one after its changes; otherwise pairs of two changes would be counted twice or not at all."""
    carried: tuple[str, ...]
    """Columns of the stream that the pairs keep."""
    fetched: _Names
    """Columns of the arrangement, and their names in the pairs."""
    predicate: Expression | None
    """Condition on pairs."""
    hashed: bool = False
    """Whether the stream already has the hash of `key`."""
    outputs: _Outputs | None = None
    """Projection of the pairs; None: all columns."""
    mode: Mode = "inner"
    guard: Expression | None = None
    """If the mode is not `inner`: stream rows that fail it have no match."""
    filter: Expression | None = None
    """If the mode is not `inner`: which rows of the arrangement can match; in a join at arrival, which pairs."""
    present: str | None = None
    between: tuple[Expression, Expression] | None = None
    """Only rows whose order value is in [first, second), or (first, second] if `strict`, match."""
    latest: Expression | None = None
    """Only rows with the latest order value up to this time, or before it if `strict`, match."""
    strict: bool = False
    near: tuple[Expression, int, int] | None = None
    """Only rows whose order value is between time - second and time + third match."""
    last: bool = False
    """Whether the step ends a path: rows with an error are counted and dropped here."""
    user: str = ""
    """The views that the path belongs to, for errors."""


@dataclass(frozen=True)
class Presence:
    """Turn changes of a relation into changes for joins that test whether a key has rows, or pad missing keys."""

    input: str
    output: str
    arrangement: Arrangement
    """The relation by the key of the join."""
    mode: Mode
    """`semi` and `anti` test whether a key has rows, `left` pads."""
    filter: Expression | None
    """Which rows of the relation can match."""
    keys: tuple[str, ...]
    """Output columns with the key."""
    outputs: _Outputs = ()
    """In mode `left`: output columns of the changed rows, which are NULL in padding."""
    present: str | None = None
    user: str = ""
    """The views that the path belongs to, for errors."""


@dataclass(frozen=True)
class MatchStatus:
    """Find left rows that gain their first match or lose their last one, if the join has conditions besides its key."""

    input: str
    output: str
    arrangement: Arrangement
    """The changed relation by the key of the join."""
    left: Arrangement
    """The left side by the key of the join."""
    key: Key
    """The key of left rows."""
    after: bool
    """Whether left rows are read with this epoch's changes (see `Lookup.after`)."""
    mode: Mode
    filter: Expression | None
    """Which rows of the changed relation can match."""
    condition: Expression | None
    """Which pairs match, over the columns `fetched` and `paired`."""
    fetched: _Names
    """Columns of left rows, and their names in the output."""
    paired: _Names
    """Columns of changed rows, and their names in `condition`."""
    outputs: tuple[str, ...] = ()
    """In mode `left`: output columns of the changed rows, which are NULL in padding."""
    present: str | None = None
    restriction: Expression | None = None
    """The part of the condition that is about left rows alone. Where it fails, the left row gets the error, and the
    pair still matches."""
    user: str = ""
    """The views that the path belongs to, for errors."""


@dataclass(frozen=True)
class Coverage:
    """Turn changes of validity windows into changes for left joins, which pad times that no window contains.

    The times before the first window of a partition, or all times if it has none, become a window of padding.
    """

    input: str
    output: str
    arrangement: Arrangement
    """The windows by partition."""
    bounds: tuple[str, str]
    """Input columns with the start and end of a window."""
    keys: tuple[str, ...]
    """Output columns with the partition."""
    start: str
    """Output column with the start of a window."""
    end: str
    """Output column with the end of a window."""
    outputs: _Outputs = ()
    """Output columns of the changed rows, which are NULL in padding."""
    present: str | None = None

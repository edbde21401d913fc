"""The logical plan: a query as a tree of relational operators. The binder builds it.

Columns have ids that are unique within a query, such as `3.o_custkey` (number of the scan and name), so that trees can
be combined and split without renaming. Expressions refer to column ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from rejoinder.ir.aggregate_calls import Call, ValueOrder
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.monotone import Step, simplified
from rejoinder.ir.expressions.operators import shifted
from rejoinder.ir.function_reference import PythonFunction
from rejoinder.ir.identities import RelationId
from rejoinder.ir.window_calls import SortColumn, WindowCall


@dataclass(frozen=True)
class Bound:
    """The fact that `later >= steps(earlier)` in every result row."""

    later: Expression
    """A column. Its type is irrelevant: the result of `steps` is in the unit of the column."""
    earlier: Expression
    """A column of another input."""
    steps: tuple[Step, ...] = ()
    """A monotone function, applied to `earlier`."""


def bound_between(later: Expression, earlier: Expression, steps: tuple[Step, ...] = ()) -> Bound | None:
    """Derive a bound on columns from `later >= steps(earlier)`, both monotone in a column; None if there is none."""
    above, below = later.monotone, earlier.monotone
    inverse = None if above is None or later.repeats else above.least()
    if above is None or below is None or inverse is None:
        return None
    combined = simplified((*below.steps, *steps, *inverse))
    return Bound(column(above.column, later.type), column(below.column, earlier.type), combined)


@dataclass(frozen=True)
class Predicate:
    """One conjunct of a condition."""

    expression: Expression
    equality: tuple[Expression, Expression] | None = None
    """The sides of `a = b` or `a <=> b` over different inputs, cast to a common key type."""
    null_safe: bool = False
    """Whether the equality is `a <=> b`."""
    order: tuple[Expression, Expression] | None = None
    """The lesser and greater side of `a < b` or `a <= b` over different inputs, on times or numbers."""
    strict: bool = False
    """Whether the order is `a < b`."""
    bounds: tuple[Bound, ...] = ()
    """What follows for the distance of two time columns."""


@dataclass(frozen=True)
class Scan:
    """The rows of a source, or of a view that is not inlined."""

    relation: RelationId
    columns: tuple[tuple[str, str], ...]
    """Ids and names."""
    schema: pa.Schema
    imposed: tuple[tuple[str, int], ...] = ()
    """Watermarks that the query declares with IMPOSE_ORDER: columns and delays."""


@dataclass(frozen=True)
class Filter:
    """The rows for which all predicates are true."""

    input: Node
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True)
class Project:
    """New columns, computed from those of the input."""

    input: Node
    outputs: tuple[tuple[str, Expression], ...]


JoinKind = Literal["inner", "left", "full", "semi", "anti", "full anti"]
ArrivalKind = Literal["inner", "left", "full", "semi", "anti"]


@dataclass(frozen=True)
class Join:
    """A join. A pair matches if all predicates are true.

    `left` pads left rows without a match, `full` those of both sides; `semi` keeps the left rows that have a match,
    `anti` those that have none, `full anti` the padded rows of both sides. RIGHT is `left` with its sides swapped.

    In the tree that the binder returns to itself, the right side may read columns of the left side, as a subquery or
    LATERAL does. `plan.unnest` replaces all such joins before the query is planned.
    """

    left: Node
    right: Node
    predicates: tuple[Predicate, ...]
    kind: JoinKind = "inner"


@dataclass(frozen=True)
class Arrival:
    """A join at arrival: rows of the append-only left side are joined once, with the right side at their epoch.

    Later changes of the right side do not affect them. `full` needs two append-only sides; it has the pairs of an inner
    join, and the padded rows of either side that had no match when they arrived.
    """

    left: Node
    right: Node
    predicates: tuple[Predicate, ...]
    kind: ArrivalKind


@dataclass(frozen=True)
class Latest:
    """The last row of each key of an append-only input: by `order`, if there is one, then by arrival."""

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    key: tuple[str, ...]
    order: str | None


@dataclass(frozen=True)
class Records:
    """The changes of the input as append-only rows. `_undo` is FALSE for an insertion and TRUE for a retraction."""

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    """Ids and types of the input's columns."""
    system: tuple[tuple[str, pa.DataType], ...]
    """Ids and types of `_undo`, `_epoch` and `_emit_time`."""


@dataclass(frozen=True)
class SetOperation:
    """A set operation. Columns correspond by position."""

    operation: str
    """Its SQL clause, one of `plan.operations.set_operations`."""
    inputs: tuple[Node, ...]
    selected: tuple[tuple[str, ...], ...]
    """The columns of each input, by id."""
    columns: tuple[tuple[str, pa.DataType], ...]
    """Ids and types of the result's columns."""


@dataclass(frozen=True)
class Distinct:
    """Each distinct row once."""

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    """Ids and types of the columns that are compared: all of them."""


@dataclass(frozen=True)
class Aggregate:
    """One row per group: `keys`, then `calls`. NULL is a key. Without keys there is always exactly one row."""

    input: Node
    keys: tuple[tuple[str, Expression], ...]
    calls: tuple[tuple[str, Call], ...]
    session: tuple[str, int] | None = None
    """Of groups by the start of a session: the call that is the largest time of a group, and the gap."""
    order: ValueOrder | None = None

    @property
    def arguments(self) -> list[Expression]:
        """What is read besides the keys."""
        ordered = [] if self.order is None else [e for e, _ in self.order.columns] + [self.order.weight]
        return [*(call.argument for _, call in self.calls if call.argument is not None), *ordered]

    def with_arguments(self, change: Callable[[Expression], Expression]) -> Aggregate:
        """The same aggregates of other arguments."""
        calls = tuple(
            (i, call if call.argument is None else replace(call, argument=change(call.argument)))
            for i, call in self.calls
        )
        order = self.order
        if order is not None:
            order = ValueOrder(tuple((change(e), direction) for e, direction in order.columns), change(order.weight))
        return replace(self, calls=calls, order=order)


@dataclass(frozen=True)
class Expand:
    """Each row once per element of a list."""

    input: Node
    output: str
    """The id of the column with the element."""
    elements: Expression
    """The list."""
    kept: tuple[str, ...] | None = None
    """The columns of the input that the repeated rows have; None: all."""


@dataclass(frozen=True)
class Validity:
    """Versions with the ends of their validity windows. Rows whose time is NULL are dropped: they are never valid."""

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    """Ids and types of the input's columns."""
    partition: tuple[str, ...]
    """The key of the versions."""
    time: str
    """From when a version is valid."""
    end: str
    """The id of the added column: the next later time of the same partition, or the maximum of the type."""


@dataclass(frozen=True)
class Session:
    """The columns of the input and the start of each row's session. Rows whose time is NULL are left out.

    A session is a chain of times of one partition, each at most a gap after the one before it.
    """

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    """Ids and types of the input's columns."""
    partition: tuple[str, ...]
    """The key of the sessions."""
    time: str
    gap: int
    """The longest distance of two times of a session, in the unit of the time."""
    start: str
    """The id of the added column: the first time of the session."""


@dataclass(frozen=True)
class Current:
    """The rows of the input that the processing time of the epoch lies in the time of: `start` <= now < `end`."""

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    """Ids and types of the columns that are kept."""
    start: str | None
    """The column with the time at which a row enters; None: it is there from the beginning."""
    end: str | None
    """The column with the time at which a row leaves; None: it stays."""


@dataclass(frozen=True)
class Enrich:
    """The columns of the input, and those that a Python function computes for each row."""

    input: Node
    arguments: tuple[tuple[str, str], ...]
    """Ids of the input's columns, and the names that the function sees."""
    answers: tuple[tuple[str, str, pa.DataType], ...]
    """Ids, names and types of the added columns."""
    function: PythonFunction


@dataclass(frozen=True)
class WindowCalls:
    """The `columns` of the input, and the values of window functions over the rows of the same `partition`.

    Rows are ordered by `order`, and rows that are equal in this by the columns of `ties`. Columns are named by their
    identifiers, also in the calls; `calls` have identifiers of their own.

    With a `limit`, only rows are needed for which the call with this identifier, a rank, is at most this number.
    """

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    partition: tuple[str, ...]
    order: tuple[SortColumn, ...]
    ties: tuple[SortColumn, ...]
    calls: tuple[tuple[str, WindowCall], ...]
    limit: tuple[str, int] | None = None


@dataclass(frozen=True)
class AtMostOne:
    """One row for each `key` that has rows: its row, or NULL in all other columns if it has more than one.

    `columns` are the input's identifiers in order, `key` some of them. `many` tells which case it is: an expression
    above fails where it is TRUE (`ir.operators.at_most_one`).
    """

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    key: tuple[str, ...]
    many: str


Node = (
    Scan
    | Filter
    | Project
    | Join
    | Arrival
    | SetOperation
    | Distinct
    | Aggregate
    | Expand
    | Validity
    | Session
    | Current
    | WindowCalls
    | Enrich
    | Latest
    | Records
    | AtMostOne
)


@dataclass(frozen=True)
class Window:
    """A result column that is a window."""

    start: Expression
    end: Expression
    size: int | None = None
    """Its length in microseconds, if fixed."""


EMIT_AT, GATE = "__emit_at", "__gate"
"""Hidden columns of pending changes: the emit time, and the number of the watermark that it is compared with."""
Policy = Literal["changes", "every", "watermark", "final"]


@dataclass(frozen=True)
class Emission:
    """When changes are emitted."""

    policy: Policy
    interval: int = 0
    """For `every`: the period in microseconds, over which changes are consolidated."""
    emit_time: Expression | None = None
    """The emit time of a row: it is emitted once the watermark has reached it."""
    gate: Expression | None = None
    """The index of the watermark in `clocks` that applies to a row."""
    clocks: tuple[tuple[str, str], ...] = ()
    """Sources and columns whose watermarks apply; empty for the watermark of `emit_time` itself."""
    times: tuple[Expression, ...] = ()
    """If not empty, `emit_time` is the first of these that is not NULL."""


def after(time: Expression) -> Expression:
    """Return the next value after a time: a watermark that has reached it has passed the time."""
    return Expression(shifted(time.node, 1), time.text)


@dataclass(frozen=True)
class Query:
    """A bound query."""

    root: Node
    outputs: tuple[tuple[str, Expression], ...]
    """Names and expressions of the result columns."""
    windows: Mapping[str, Window] = field(default_factory=dict)
    """Starts and ends of the result columns that are windows, by name."""
    emission: Emission | None = None
    """The EMIT clause; None for EMIT CHANGES."""

    @property
    def schema(self) -> pa.Schema:
        """Return names and types of the result columns."""
        return pa.schema([(name, expression.type) for name, expression in self.outputs])

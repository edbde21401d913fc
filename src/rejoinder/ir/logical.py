"""The logical plan: a query as a tree of relational operators, as the binder made it.

Columns have identifiers that are unique within a query (`3.o_custkey`: scan number and name), so that trees can be
put together and taken apart without renaming. Expressions refer to identifiers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from rejoinder.ir.expression import Expression, column
from rejoinder.ir.function_reference import PythonFunction
from rejoinder.ir.monotone import Step, simplified
from rejoinder.ir.operators import moved
from rejoinder.ir.window_calls import SortColumn, WindowCall


@dataclass(frozen=True)
class Bound:
    """`later` is never less than what `steps` make of `earlier`: two columns, of different inputs.

    The steps lead to the unit of `later`. The types of the two expressions say nothing.
    """

    later: Expression
    earlier: Expression
    steps: tuple[Step, ...] = ()


def bound_between(later: Expression, earlier: Expression, steps: tuple[Step, ...] = ()) -> Bound | None:
    """What `later >= steps of earlier` says about the columns that the two times rise with; None: nothing."""
    above, below = later.rises, earlier.rises
    turned = None if above is None or later.repeats else above.least()
    if above is None or below is None or turned is None:
        return None
    made = simplified((*below.steps, *steps, *turned))
    return Bound(column(above.column, later.type), column(below.column, earlier.type), made)


@dataclass(frozen=True)
class Predicate:
    """One conjunct of a condition.

    `equality` holds its two sides where it is `a = b` (or, `null_safe`, `a <=> b`), cast to a common key type; `order`
    its lesser and greater side where it is `a < b` or (not `strict`) `a <= b`, on times or numbers. `bounds` is what it
    says about how far two columns of times can be apart.
    """

    expression: Expression
    equality: tuple[Expression, Expression] | None = None
    null_safe: bool = False
    order: tuple[Expression, Expression] | None = None
    strict: bool = False
    bounds: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class Scan:
    """The rows of a source, or of a view that is kept as a relation of its own.

    `imposed` are watermarks that the query itself declares: columns, and how far they stay behind.
    """

    relation: str
    columns: tuple[tuple[str, str], ...]
    schema: pa.Schema
    imposed: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Filter:
    """The rows for which all predicates are true."""

    input: Node
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True)
class Project:
    """New columns from old ones."""

    input: Node
    outputs: tuple[tuple[str, Expression], ...]


JoinKind = Literal["inner", "left", "full", "semi", "anti", "full anti"]
ArrivalKind = Literal["inner", "left", "full", "semi", "anti"]


@dataclass(frozen=True)
class Join:
    """Pairs of rows for which all predicates are true, and what the kind makes of rows without a partner.

    `left` pads left rows with NULL, `full` those of both sides; `semi` keeps the left rows that have a partner, `anti`
    those that have none, `full anti` the padded rows of both sides. SQL's RIGHT is LEFT with its sides swapped.
    """

    left: Node
    right: Node
    predicates: tuple[Predicate, ...]
    kind: JoinKind = "inner"


@dataclass(frozen=True)
class Arrival:
    """Rows of an append-only left side, each joined once: with the right side as it is in the epoch in which they come.

    Later changes of the right side change nothing about them. `full` is for two append-only sides: pairs as in any
    join, and rows of either side that had no partner when they came.
    """

    left: Node
    right: Node
    predicates: tuple[Predicate, ...]
    kind: ArrivalKind


@dataclass(frozen=True)
class Latest:
    """Of an append-only input, the last row of each key: by `order` if it is given, and then as they come."""

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    key: tuple[str, ...]
    order: str | None


@dataclass(frozen=True)
class Records:
    """The changes of the input as rows that stay: its `columns`, then `_undo`, `_epoch` and `_emit_time` as `system`.

    A row that comes is a row with `_undo` FALSE, one that goes a row with `_undo` TRUE.
    """

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    system: tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class SetOperation:
    """What a set operation, named by its SQL clause, makes of its inputs; columns go by position.

    `selected` are the columns of each input, `columns` the identifiers and types of the result. The clauses are listed
    in `plan.operations.set_operations`.
    """

    operation: str
    inputs: tuple[Node, ...]
    selected: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class Distinct:
    """Each row once; `columns` are the identifiers that make a row."""

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]


Function = Literal["count", "sum", "min", "max"]


@dataclass(frozen=True)
class Call:
    """An aggregate function on an argument; `count` without one counts rows. NULL arguments do not take part."""

    function: Function
    argument: Expression | None
    type: pa.DataType


@dataclass(frozen=True)
class Aggregate:
    """One row per group: `keys` (NULL is a group of its own), then `calls`. Without keys: one row, always."""

    input: Node
    keys: tuple[tuple[str, Expression], ...]
    calls: tuple[tuple[str, Call], ...]


@dataclass(frozen=True)
class Expand:
    """Each row once per element of a list: `output` takes the elements of `elements`."""

    input: Node
    output: str
    elements: Expression


@dataclass(frozen=True)
class Validity:
    """All columns of the input and `end`: the next later time of the same partition, or the end of all times.

    `columns` are the input's identifiers in order, `partition` and `time` some of them. Rows whose time is NULL are
    never valid and stay out.
    """

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    partition: tuple[str, ...]
    time: str
    end: str


@dataclass(frozen=True)
class Enrich:
    """Columns of the input, and what a function answers about each row.

    `arguments` are the input's identifiers with the names by which the function knows them; `answers` have identifiers
    of their own.
    """

    input: Node
    arguments: tuple[tuple[str, str], ...]
    answers: tuple[tuple[str, str, pa.DataType], ...]
    function: PythonFunction


@dataclass(frozen=True)
class WindowCalls:
    """The `columns` of the input, and the values of window functions over the rows of the same `partition`.

    Rows are ordered by `order`, and rows that are equal in this by the columns of `ties`. Columns are named by their
    identifiers, also in the calls; `calls` have identifiers of their own.
    """

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]
    partition: tuple[str, ...]
    order: tuple[SortColumn, ...]
    ties: tuple[SortColumn, ...]
    calls: tuple[tuple[str, WindowCall], ...]


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
    | WindowCalls
    | Enrich
    | Latest
    | Records
)


@dataclass(frozen=True)
class Window:
    """Start and end of a result column that is a window, and its length in microseconds where that is fixed."""

    start: Expression
    end: Expression
    size: int | None = None


EMIT_AT, GATE = "__emit_at", "__gate"
Policy = Literal["changes", "every", "watermark", "final"]


@dataclass(frozen=True)
class Emission:
    """When changes come out: netted every `interval` (microseconds), or once the watermark is at `release`.

    `clocks`, if given, are the (source, column) whose watermark counts; `gate` tells which of them, from 0, for a row.
    `times`, if given, are what the release is made of: a row is released by the first of them that is not NULL.
    """

    policy: Policy
    interval: int = 0
    release: Expression | None = None
    gate: Expression | None = None
    clocks: tuple[tuple[str, str], ...] = ()
    times: tuple[Expression, ...] = ()


def after(time: Expression) -> Expression:
    """The next value after a time: a watermark that has reached it has passed the time."""
    unit = "INTERVAL 1 MICROSECOND" if pa.types.is_timestamp(time.type) else "1"
    return Expression(moved(time.node, f"({{0}} + {unit})", 1), time.text)


@dataclass(frozen=True)
class Query:
    """A tree with the names and identifiers of its result columns; `windows` knows the ends of some, by name."""

    root: Node
    outputs: tuple[tuple[str, Expression], ...]
    windows: Mapping[str, Window] = field(default_factory=dict)
    emission: Emission | None = None

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the result."""
        return pa.schema([(name, expression.type) for name, expression in self.outputs])

"""The steps of an epoch, as frozen data. Operators mirror them one to one, file by file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from rejoinder.ir.expression import Expression
from rejoinder.ir.function_reference import PythonFunction
from rejoinder.ir.window_calls import Reach, SortColumn, WindowCall
from rejoinder.plan.blocks.accumulators import Accumulator
from rejoinder.plan.blocks.normal_form import Mode
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.retention_bound import Retention
from rejoinder.watermarks.formula import Formula

Outputs = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Channel:
    """Deltas sent to the bucket of their key, for the steps of one later round.

    `matching_only`: rows with a NULL key, which match nothing, need not be sent. `everywhere`: all rows go to all
    buckets, to meet what each of them holds.
    """

    number: int
    stream: str
    key: Key
    round: int
    matching_only: bool = False
    everywhere: bool = False


@dataclass(frozen=True)
class OnTime:
    """Let the rows pass whose `times` are not below what is promised of them; the others go to `late`, as notes.

    These are counted for `views`. `name` says whose rows they are, `labels` what their columns are called there;
    `policy` is keep, drop or fail. Rows with NULL are late, unless `keeps_nulls`.
    """

    input: str
    output: str
    late: str
    name: str
    times: tuple[tuple[str, Formula], ...]
    views: tuple[str, ...]
    policy: str = "keep"
    labels: tuple[tuple[str, str], ...] = ()
    keeps_nulls: bool = False


@dataclass(frozen=True)
class Derive:
    """Filter and project a stream. Stateless.

    A row on which an expression fails goes on, marked; if this is the `last` step of a path, it is counted and ends
    here. `optional` says on which rows nothing is to be counted: a row that fails is left out.
    """

    input: str
    output: str
    predicate: Expression | None
    outputs: Outputs
    last: bool = False
    optional: Expression | None = None


@dataclass(frozen=True)
class Check:
    """Count the rows of a stream that satisfy the predicate and on which one of the expressions fails."""

    input: str
    predicate: Expression | None
    expressions: tuple[Expression, ...]


@dataclass(frozen=True)
class Send:
    """Cut a stream by the bucket of the channel's key and hand it to the channel."""

    input: str
    channel: Channel


@dataclass(frozen=True)
class Arrange:
    """Add a stream to an arrangement; with `check`, refuse to take out a row that is not there and has not expired.

    With a `retention`, runs know the span of their times, so that expired rows can be dropped; also of other `times`,
    so that the oldest that is kept can be told.
    """

    input: str
    arrangement: Arrangement
    check: bool
    retention: Retention | None = None
    times: tuple[str, ...] = ()


@dataclass(frozen=True)
class Upsert:
    """Turn the rows of a table's source, one per key and change, into the change of the table's content.

    `whole`: the input is everything there is, in no order, not what comes in this epoch (in a hydration).
    """

    input: str
    output: str
    arrangement: Arrangement
    order: str | None
    whole: bool = False


@dataclass(frozen=True)
class Record:
    """Write the changes of a stream down as rows, with the sign, the epoch and its time in three more columns."""

    input: str
    output: str
    undo: str
    epoch: str
    time: str


@dataclass(frozen=True)
class Lookup:
    """Pair a stream with an arrangement by key: one hop of a delta path.

    `after`: see the arrangement with this epoch's changes, else without (the tie-break). `fetched` maps columns of
    the arrangement to columns of the pair, `carried` lists the stream's columns to keep; `predicate` is about pairs.
    In a mode other than `inner`, rows that fail the `guard` have no partner, and `filter` says which rows of the
    arrangement can be one (at arrival, which pairs count); `present` names the column that is TRUE in pairs and NULL in
    padded rows. In an ordered arrangement, only rows with an order value in [`between`) are met, or those at the
    `latest` value up to a time; if `strict`, in (`between`], or before a time. `near`: only rows with an order value
    from so much below a time to so much above it. `last`: it ends the path; rows on which an expression failed are
    counted and end here.
    """

    input: str
    output: str
    arrangement: Arrangement
    key: Key
    after: bool
    carried: tuple[str, ...]
    fetched: tuple[tuple[str, str], ...]
    predicate: Expression | None
    hashed: bool = False
    outputs: Outputs | None = None
    mode: Mode = "inner"
    guard: Expression | None = None
    filter: Expression | None = None
    present: str | None = None
    between: tuple[Expression, Expression] | None = None
    latest: Expression | None = None
    strict: bool = False
    near: tuple[Expression, int, int] | None = None
    last: bool = False


@dataclass(frozen=True)
class Presence:
    """What a relation's change means for joins that only ask whether a key has rows (`semi`, `anti`), or pad (`left`).

    The output has the key in `keys` and, in mode `left`, the `outputs` of the changed rows; the change of padding
    has NULL in these.
    """

    input: str
    output: str
    arrangement: Arrangement
    mode: Mode
    filter: Expression | None
    keys: tuple[str, ...]
    outputs: Outputs = ()
    present: str | None = None


@dataclass(frozen=True)
class MatchStatus:
    """Update the match status of left rows, for an outer, semi or anti join with conditions on pairs beside its key.

    The step looks at rows of the `left` arrangement that pair with a changed row: did they have a partner before the
    epoch, and do they have one now? The output has the columns `fetched` of the left rows and, in mode `left`, the
    `outputs` of the changed ones; padding has NULL in these. `filter` says which rows of the relation count,
    `condition` which pairs, of the columns `fetched` and `paired`; `after`: left rows are seen with this epoch's
    changes. `key` is that of left rows. `restriction`, if given, is about left rows alone: where it fails, the left row
    is marked, not the pair.
    """

    input: str
    output: str
    arrangement: Arrangement
    left: Arrangement
    key: Key
    after: bool
    mode: Mode
    filter: Expression | None
    condition: Expression | None
    fetched: tuple[tuple[str, str], ...]
    paired: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...] = ()
    present: str | None = None
    restriction: Expression | None = None


@dataclass(frozen=True)
class Coverage:
    """What a change of validity windows means for joins that pad a time which no window of its partition contains.

    The output has the partition in `keys`, the window in `start` and `end`, and the `outputs` of the changed rows. The
    time before the first window of a partition, or all time if it has none, is a window with NULL in the outputs.
    """

    input: str
    output: str
    arrangement: Arrangement
    bounds: tuple[str, str]
    keys: tuple[str, ...]
    start: str
    end: str
    outputs: Outputs = ()
    present: str | None = None


@dataclass(frozen=True)
class Distinct:
    """Keep each row once, however many copies the input has. The arrangement counts the copies.

    `whole`: the input is everything there is, not a change of what the arrangement counts (in a hydration).
    """

    input: str
    output: str
    arrangement: Arrangement
    whole: bool = False


Kept = Literal["intersect", "except"]
"""Which rows of the left side a set operation keeps: those that the right side has, or those that it has not."""


@dataclass(frozen=True)
class IntersectExcept:
    """Keep each row as often as INTERSECT or EXCEPT says, from how many copies the left and the right side have.

    The arrangement holds the rows of both sides by all their columns but `side`, which is TRUE in rows of the left one.
    `whole`: the input is everything there is, not a change of what the arrangement holds (in a hydration).
    """

    input: str
    output: str
    arrangement: Arrangement
    side: str
    keeps: Kept
    all: bool
    whole: bool = False


@dataclass(frozen=True)
class Aggregate:
    """Keep one row per group of rows with equal `keys`: the keys, the number of rows, the accumulators.

    The arrangement holds those rows by key; `values`, where it is needed, the input's rows, to find the smallest or
    largest value again. `views` are named when a sum overflows.
    `whole`: the input is everything there is, not a change of what the arrangement holds (in a hydration).
    """

    input: str
    output: str
    arrangement: Arrangement
    keys: tuple[str, ...]
    accumulators: tuple[Accumulator, ...]
    values: Arrangement | None
    views: tuple[str, ...]
    whole: bool = False


@dataclass(frozen=True)
class Validity:
    """Give each row the time until which it is valid: `end` is the next later time of its key, or the last of times.

    The arrangement holds the input's relation by partition key (NULL is a key like any other), ordered by the time.
    `whole`: the input is everything there is, not a change of what the arrangement holds (in a hydration).
    """

    input: str
    output: str
    arrangement: Arrangement
    end: str
    whole: bool = False


@dataclass(frozen=True)
class Sorting:
    """The order of rows in a partition, as sort keys: bytes that compare as the rows do."""

    columns: tuple[SortColumn, ...]
    """The columns of ORDER BY."""
    floor: Expression
    """The part of a key that all rows of a partition share."""
    group: Expression
    """The part that all rows of a partition with equal order values share."""
    key: Expression
    """The key of a row: rows that have the same one are equal."""

    @property
    def compared(self) -> tuple[tuple[str, ...], bool]:
        """The names of the columns, and whether the first one descends."""
        return tuple(column.name for column in self.columns), bool(self.columns) and self.columns[0].descending


@dataclass(frozen=True)
class Window:
    """Give each row of a partition the values of window functions.

    The arrangement holds the rows with these values, by partition and in the order of their keys: the columns of the
    input, `payload` of them, the key, a number that tells equal rows apart, and the values of `calls`. `views` are
    named when a sum overflows. `whole`: the input is everything there is (in a hydration).
    """

    input: str
    output: str
    arrangement: Arrangement
    payload: tuple[str, ...]
    sorting: Sorting
    calls: tuple[tuple[str, WindowCall], ...]
    views: tuple[str, ...]
    whole: bool = False

    @property
    def reach(self) -> Reach:
        """How far a change reaches."""
        return Reach.of(tuple(call for _, call in self.calls))

    @property
    def result_schema(self) -> pa.Schema:
        """The values of the calls, and what else running ones keep."""
        return result_schema(self.calls)

    @property
    def running_names(self) -> list[str]:
        """The columns that running calls make."""
        return list(result_schema([(name, call) for name, call in self.calls if call.is_running]).names)


def result_schema(calls: Iterable[tuple[str, WindowCall]]) -> pa.Schema:
    """The columns of window calls."""
    fields = []
    for name, call in calls:
        fields.append((name, call.type))
        fields += [(name + suffix, kind) for suffix, kind in call.hidden]
    return pa.schema(fields)


@dataclass(frozen=True)
class Enrich:
    """Give each row what a function answers about it: asked when the row comes, remembered while it is there.

    The arrangement holds the rows with their answers, by the columns of the row. `arguments` are those columns as the
    function knows them, `answers` what it gives. `views` are named when a call fails. `whole`: the input is everything
    there is, not a change of what the arrangement holds (in a hydration).
    """

    input: str
    output: str
    arrangement: Arrangement
    function: PythonFunction
    arguments: pa.Schema
    answers: pa.Schema
    views: tuple[str, ...]
    whole: bool = False


@dataclass(frozen=True)
class Clip:
    """Keep the rows of a whole relation that have more inserts than deletes. Equal rows are in one bucket."""

    input: str
    output: str


@dataclass(frozen=True)
class Sweep:
    """Cancel what a stream of intervals [`start`, `end`) takes back and gives again, all other columns equal."""

    input: str
    output: str
    start: str
    end: str


@dataclass(frozen=True)
class Hold:
    """Write the changes of a view that may come out to its changelog, and keep the others by the time of release.

    With an `interval`, a change is released at the next multiple of it on the clock, else at its `__emit_at`. If
    changes have a `__gate`, this is about those with the given one. Runs know the span of other `times`, too.
    """

    input: str
    view: str
    pending: Arrangement
    interval: int
    gate: int = 0
    times: tuple[str, ...] = ()


@dataclass(frozen=True)
class Emit:
    """Write a stream to the changelog of a view."""

    input: str
    view: str


Stateless = OnTime | Derive | Check | Send | Record | Clip | Sweep | Emit
Keeping = Arrange | Upsert | Distinct | IntersectExcept | Aggregate | Validity | Window | Enrich | Hold
Step = Stateless | Keeping | Lookup | Presence | MatchStatus | Coverage

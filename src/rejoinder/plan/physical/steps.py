"""The steps of an epoch, as frozen data. `runtime.steps` executes them, one file per step.

`input` and `output` name streams: the deltas that a task has in memory. Steps that join streams are in `join_steps`,
those on ordered partitions in `window_steps`.

`whole` marks a step of a hydration: its input is the complete relation, not a change of the arrangement's content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.function_reference import PythonFunction
from rejoinder.plan.blocks.accumulators import Accumulator, OrderColumns
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.join_steps import Coverage, Lookup, MatchStatus, Presence
from rejoinder.plan.physical.retention_bound import Retention
from rejoinder.plan.physical.window_steps import FirstRows, PartialFirstRows, Window
from rejoinder.watermarks.formula import Formula

Outputs = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Channel:
    """A connection to a later round: each row goes to the bucket of its key."""

    number: int
    """Identifies the channel in exchange rows."""
    stream: str
    """The stream of the later round that receives the rows."""
    key: Key
    """The key by which rows are partitioned."""
    round: int
    """The round that receives the rows."""
    matching_only: bool = False
    """Whether rows with a NULL key are not sent, because they match nothing."""
    everywhere: bool = False
    """Whether every row goes to every bucket, for a join without an equality."""


@dataclass(frozen=True)
class OnTime:
    """Pass on the rows that are on time; late rows go to a side output."""

    input: str
    output: str
    late: str
    """The stream of late rows, with the columns of the side output."""
    name: str
    """The input whose rows these are, for the side output."""
    times: tuple[tuple[str, Formula], ...]
    """Event-time columns and their watermarks. A row is late if one of its times is below the watermark."""
    views: tuple[str, ...]
    """The views that leave the late rows out; they are counted for each."""
    policy: str = "keep"
    """What to do with late rows: keep (in the side output), drop or fail."""
    labels: tuple[tuple[str, str], ...] = ()
    """Names of columns in the side output, where they differ from those of the stream."""
    keeps_nulls: bool = False
    """Whether rows whose time is NULL are on time."""


@dataclass(frozen=True)
class Derive:
    """Filter and project a stream. Stateless. A row on which an expression fails is passed on with its error."""

    input: str
    output: str
    predicate: Expression | None
    outputs: Outputs
    last: bool = False
    """Whether the step ends a path: rows with an error are counted and dropped here."""
    optional: Expression | None = None
    """Where this is true, a row on which an expression fails is dropped without being counted."""


@dataclass(frozen=True)
class Check:
    """Count the rows on which an expression fails, on a path that would drop them."""

    input: str
    predicate: Expression | None
    """Only rows that satisfy it are checked."""
    expressions: tuple[Expression, ...]


@dataclass(frozen=True)
class Send:
    """Partition a stream by the key of a channel and send it."""

    input: str
    channel: Channel
    columns: frozenset[str] | None = None
    """The columns that the later round reads; None: all."""


@dataclass(frozen=True)
class Arrange:
    """Add a stream to an arrangement as a new run."""

    input: str
    arrangement: Arrangement
    check: bool
    """Whether to fail on a retraction of a row that the arrangement does not have and that has not expired."""
    retention: Retention | None = None
    """When rows expire; None: never. Runs store the spans of its time columns, so that expired rows can be dropped."""
    times: tuple[str, ...] = ()
    """Further time columns whose spans runs store, for retained minima."""


@dataclass(frozen=True)
class Upsert:
    """Turn the records of a table's source into changes of the table: the newest record of a key replaces its row."""

    input: str
    output: str
    arrangement: Arrangement
    """The rows of the table by primary key."""
    order: str | None
    """The column by which the newest record is chosen; None: by arrival."""
    whole: bool = False


@dataclass(frozen=True)
class Record:
    """Turn changes into rows of an append-only relation (CHANGES)."""

    input: str
    output: str
    undo: str
    """The output column that is TRUE for a retraction."""
    epoch: str
    """The output column with the epoch."""
    time: str
    """The output column with the processing time of the epoch."""


@dataclass(frozen=True)
class Distinct:
    """Keep each distinct row once."""

    input: str
    output: str
    arrangement: Arrangement
    """The input by the whole row, with the number of copies."""
    whole: bool = False


Kept = Literal["intersect", "except"]
"""Which rows of the left side a set operation keeps: those that the right side has, or those that it lacks."""


@dataclass(frozen=True)
class IntersectExcept:
    """INTERSECT or EXCEPT [ALL]: the number of copies of a row follows from those on the left and on the right side."""

    input: str
    output: str
    arrangement: Arrangement
    """The rows of both sides, by all columns except `side`."""
    side: str
    """The column that is TRUE in rows of the left side."""
    keeps: Kept
    all: bool
    """Whether copies count: INTERSECT ALL, EXCEPT ALL."""
    whole: bool = False


@dataclass(frozen=True)
class AtMostOne:
    """Keep one row for each key: the only row of that key, or one with NULL in all other columns."""

    input: str
    output: str
    arrangement: Arrangement
    """The input by key. NULL is a key."""
    keys: tuple[str, ...]
    """The columns of the key."""
    many: str
    """The output column that is TRUE for a key with several rows."""
    whole: bool = False


@dataclass(frozen=True)
class Aggregate:
    """Maintain one row per group: the keys, the number of rows, the accumulators."""

    input: str
    output: str
    arrangement: Arrangement
    """The rows of the groups by key."""
    keys: tuple[str, ...]
    """The grouping columns."""
    accumulators: tuple[Accumulator, ...]
    values: Arrangement | None
    """The input's rows by key, to recompute a minimum or maximum that was retracted. None if that cannot happen."""
    views: tuple[str, ...]
    """The views that use the groups, for the error of a sum that overflows."""
    whole: bool = False
    expiring: Retention | None = None
    """When rows of the groups expire, if a group that is still needed can have such rows: a lookup leaves them out."""
    order: tuple[Arrangement, OrderColumns] | None = None
    """The input's rows by key and in order, for accumulators that need it."""


@dataclass(frozen=True)
class Validity:
    """Add the end of the validity window to each row: the next later time of its partition."""

    input: str
    output: str
    arrangement: Arrangement
    """The input by partition, ordered by time. NULL is a key."""
    end: str
    """The output column with the end; for the last version, the maximum of the type."""
    whole: bool = False


@dataclass(frozen=True)
class Session:
    """Add the start of its session to each row: a chain of times, each at most `gap` after the one before."""

    input: str
    output: str
    arrangement: Arrangement
    """The output by partition, ordered by time. NULL is a key."""
    start: str
    """The output column with the start."""
    gap: int
    """In the unit of the time."""
    whole: bool = False


@dataclass(frozen=True)
class Current:
    """Keep the rows that are current by the clock of the epochs."""

    input: str
    output: str
    pending: Arrangement
    """The rows that will enter or leave, with the times at which they do."""
    start: str | None
    """The input column from whose time on a row is current; None: from its arrival."""
    end: str | None
    """The input column until whose time a row is current; None: until it is retracted."""
    keeps: bool
    """Whether this dataflow writes `pending`."""
    whole: bool = False


@dataclass(frozen=True)
class Enrich:
    """Add the answer of a Python function to each row. A row keeps its first answer as long as it exists."""

    input: str
    output: str
    arrangement: Arrangement
    """The rows with their answers, by the columns of the row."""
    function: PythonFunction
    arguments: pa.Schema
    """The columns that the function sees."""
    answers: pa.Schema
    """The columns that the function returns."""
    views: tuple[str, ...]
    """The views that use the answers, for the error of a call that fails."""
    whole: bool = False


@dataclass(frozen=True)
class Clip:
    """Keep the rows of a complete relation that have more inserts than deletes. Equal rows must be in one bucket."""

    input: str
    output: str


@dataclass(frozen=True)
class Sweep:
    """Cancel overlapping parts of retracted and inserted intervals whose other columns are equal."""

    input: str
    output: str
    start: str
    """The column with the start of an interval, inclusive."""
    end: str
    """The column with the end of an interval, exclusive."""


@dataclass(frozen=True)
class Hold:
    """Emit the changes of a view that are due, and keep the others pending."""

    input: str
    view: str
    pending: Arrangement
    """The pending changes, with their emit time in `__emit_at`."""
    interval: int
    """If not 0, the emit time is the next multiple of this on the clock, in microseconds."""
    gate: int = 0
    """If changes have a `__gate`, only those with this number are handled here."""
    times: tuple[str, ...] = ()
    """Further time columns whose spans runs store, for retained minima."""


@dataclass(frozen=True)
class Emit:
    """Write a stream to the changelog of a view."""

    input: str
    view: str


Stateless = OnTime | Derive | Check | Send | Record | Clip | Sweep | Emit
Stateful = (
    Arrange
    | Upsert
    | Distinct
    | IntersectExcept
    | AtMostOne
    | Aggregate
    | Validity
    | Session
    | Current
    | Window
    | FirstRows
    | PartialFirstRows
    | Enrich
    | Hold
)
Step = Stateless | Stateful | Lookup | Presence | MatchStatus | Coverage

"""The steps on ordered partitions, as frozen data: window functions, and the first rows of each partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.window_calls import Reach, SortColumn, WindowCall
from rejoinder.plan.physical.arrangement import Arrangement, Key


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
class OrderedStep:
    """A step on ordered partitions."""

    input: str
    """The stream of changes."""
    output: str
    """The stream of changes of the result."""
    arrangement: Arrangement
    """The state, by partition and in the order of sort keys."""
    payload: tuple[str, ...]
    """The columns of the input that the result has."""
    sorting: Sorting
    calls: tuple[tuple[str, WindowCall], ...]
    """The columns of the result that are computed, and how."""
    views: tuple[str, ...]
    """The views that an error names if a sum overflows."""
    whole: bool = field(default=False, kw_only=True)
    """Whether the input is all rows, in a hydration."""

    @property
    def result_schema(self) -> pa.Schema:
        """The values of the calls, and what else running ones keep."""
        return result_schema(self.calls)


@dataclass(frozen=True)
class Window(OrderedStep):
    """Give each row of a partition the values of window functions.

    The arrangement holds the result: the columns of the input, the sort key, a number that tells equal rows apart, and
    the values of `calls`.
    """

    @property
    def reach(self) -> Reach:
        """How far a change reaches."""
        return Reach.of(tuple(call for _, call in self.calls))

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
class FirstRows(OrderedStep):
    """Give the first rows of each partition the values of window functions: those whose rank is at most `most`.

    The arrangement holds the rows of the input; only the first ones, if there is a stream `kept`.
    """

    rank: str
    """The call that is limited."""
    most: int
    order: str
    """The column with the sort keys."""
    kept: str | None = None
    """The stream of the changes of the arrangement, if the input is append-only: other rows never become first ones."""


@dataclass(frozen=True)
class PartialFirstRows:
    """Drop rows that cannot be among the first ones: `most` rows of their partition precede them in the same stream.

    Runs before an exchange, on an append-only stream: what is dropped need not be sent.
    """

    input: str
    output: str
    key: Key
    """What rows are partitioned by."""
    order: str
    """The column with the sort keys."""
    most: int
    """The number of rows that remain of each partition."""
    leading: SortColumn | None = None
    """The first column of ORDER BY, if it is a number or a time. Then the stream has no sort keys yet, and only rows
    that come later by this column are dropped."""

"""Watermarks that a program tells: what it means by them, and which of them no epoch has taken in yet.

A watermark promises that no earlier row follows. Rows that were there when it was told may be read later than that, so
an epoch may take it in only if it, or one before it, reads the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rejoinder.errors import InputError, near_misses
from rejoinder.ir.catalog import Source
from rejoinder.sql.types.spark_types import is_integer, spark_name
from rejoinder.state.watermarks import Partition, PartitionTimes
from rejoinder.store.runs.time_values import NO_TIME, times_of


@dataclass(frozen=True)
class Promise:
    """A watermark of a column, told of a partition. `epoch`: the first that is planned after that for certain.

    `newest`: the newest file that was there then, of a source whose files are read in order. `is_read`: all that was
    there when it was told is read.
    """

    source: str
    partition: Partition
    column: str
    value: int
    epoch: int
    newest: int | None = None
    is_read: bool = False


@dataclass
class Promises:
    """The watermarks that were told, oldest first, until an epoch takes them in."""

    pending: list[Promise] = field(default_factory=list)

    def last(self, source: str, partition: Partition, column: str) -> int | None:
        """The highest that waits, of a column and partition."""
        place = (source, partition, column)
        return max((each.value for each in self.pending if _place(each) == place), default=None)

    def note_read(self, promises: Iterable[Promise]) -> None:
        """Note that all that was there when these were told is read."""
        found = set(promises)
        self.pending = [replace(each, is_read=True) if each in found else each for each in self.pending]

    def note_newest(self, newest: Mapping[str, int]) -> None:
        """Note the newest file of each source that an epoch read: where they are read in order, all before it are."""
        self.note_read(p for p in self.pending if p.newest is not None and newest.get(p.source, -1) >= p.newest)

    def due(self, is_drained: Callable[[str, int], bool]) -> PartitionTimes:
        """What an epoch that begins now may take in, as `Signals.told`.

        `is_drained`: whether a source brought nothing in some epoch from this one on. Then all before it is read.
        """
        result: dict[str, dict[Partition, dict[str, int]]] = {}
        for each in self.pending:  # a later one of a column is higher
            if each.is_read or is_drained(each.source, each.epoch):
                result.setdefault(each.source, {}).setdefault(each.partition, {})[each.column] = each.value
        return result

    def forget(self, told: PartitionTimes) -> None:
        """Let go what an epoch took in, and what is no higher."""
        self.pending = [each for each in self.pending if not _is_within(each, told)]

    def forget_but(self, sources: Iterable[str]) -> None:
        """Let go what was told of sources that are not there any more."""
        names = set(sources)
        self.pending = [each for each in self.pending if each.source in names]


def _place(promise: Promise) -> tuple[str, Partition, str]:
    return promise.source, promise.partition, promise.column


def _is_within(promise: Promise, told: PartitionTimes) -> bool:
    taken = told.get(promise.source, {}).get(promise.partition, {}).get(promise.column)
    return taken is not None and promise.value <= taken


def event_time(source: Source, column: str | None = None) -> str:
    """The event-time column that is meant; it need not be named where there is one only."""
    known = list(source.watermarks)
    found = [name for name in known if column is None or name.lower() == column.lower()]
    if len(found) == 1:
        return found[0]
    if not known:
        fact, hint = f"`{source.name}` has no event-time column", "declare it: WATERMARK column DELAY OF INTERVAL …"
    elif column is None:
        fact, hint = f"`{source.name}` has more than one event-time column", f"name one of {', '.join(known)}"
    else:
        fact = f"`{column}` is not an event-time column of `{source.name}`"
        hint = near_misses(column, known) or f"name one of {', '.join(known)}"
    raise InputError(fact, detail=f"event-time columns: {', '.join(known) or 'none'}", hint=hint)


def told_time(source: Source, column: str, time: Any) -> int:
    """A watermark as it is told, in the unit of its column. Raises `InputError` for what is no time of that column."""
    kind = source.schema.field(column).type
    try:
        if time is None or (isinstance(time, int) and not is_integer(kind)):
            raise TypeError(f"this is of type {type(time).__name__}")  # Arrow would take it, for NULL or microseconds
        value = int(times_of(pa.table({"": pa.array([plain_value(time, kind)], kind)}), "")[0])
    except (ValueError, TypeError, OverflowError) as failure:
        raise InputError(
            f"{time!r} is not a watermark of `{source.name}`.`{column}`, which is of type {spark_name(kind)}",
            detail=str(failure),
            hint="pass an integer" if is_integer(kind) else 'pass a datetime, in UTC, or text as "2026-01-01 12:00"',
        ) from failure
    if value >= NO_TIME:
        raise InputError(
            f"{time!r} is not a watermark of `{source.name}`.`{column}`",
            detail="an integer of 2^62 or more is not a time",
            hint="pass a smaller one; to say that no rows follow, mark the source idle",
        )
    return value


def plain_value(value: Any, kind: pa.DataType) -> Any:
    """Let times be written as text, and decimals as any number."""
    if isinstance(value, str | float) and pa.types.is_decimal(kind):
        return Decimal(str(value))
    if isinstance(value, float) and pa.types.is_integer(kind) and not value.is_integer():
        raise ValueError(f"{value!r} is not an integer")  # Arrow would cut it
    if isinstance(value, float) and pa.types.is_temporal(kind):
        raise ValueError(f"{value!r} is not a time")  # Arrow would take it for microseconds, or days
    if isinstance(value, str) and pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    if isinstance(value, str) and pa.types.is_date(kind):
        return datetime.fromisoformat(value).date()
    return value

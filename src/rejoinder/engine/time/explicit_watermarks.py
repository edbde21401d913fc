"""Explicit watermarks: parse those that a program passes, and queue them until an epoch applies them.

A watermark asserts that no earlier row follows. Rows that existed when it was passed may still be unread. So an epoch
may apply it only if that epoch, or an earlier one, has read the last of these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rejoinder.errors import InputError, near_misses
from rejoinder.ir.catalog import UTC, Source
from rejoinder.kernels.zones.zone_offsets import python_zone
from rejoinder.sql.types.spark_types import is_integer, spark_name
from rejoinder.state.watermarks import Partition, PartitionTimes
from rejoinder.store.runs.time_values import NO_TIME, times_of


@dataclass(frozen=True)
class PendingWatermark:
    """An explicit watermark that no epoch has applied yet."""

    source: str
    partition: Partition
    column: str
    value: int
    epoch: int
    """The first epoch that is certainly planned after the watermark was passed."""
    newest: int | None = None
    """The newest file at that time, if the source reads its files in order."""
    is_read: bool = False
    """Whether all input that existed at that time has been read."""


@dataclass
class PendingWatermarks:
    """The queue of explicit watermarks, oldest first. An entry stays until an epoch has applied it."""

    entries: list[PendingWatermark] = field(default_factory=list)

    def last(self, source: str, partition: Partition, column: str) -> int | None:
        """Return the highest pending watermark of a column and partition; None if there is none."""
        target = (source, partition, column)
        return max((entry.value for entry in self.entries if _target(entry) == target), default=None)

    def mark_read(self, watermarks: Iterable[PendingWatermark]) -> None:
        """Mark these entries: all input that existed when they were passed has been read."""
        read = set(watermarks)
        self.entries = [replace(entry, is_read=True) if entry in read else entry for entry in self.entries]

    def mark_read_up_to(self, newest: Mapping[str, int]) -> None:
        """Mark the entries whose files have been read, by the newest file of each source that an epoch has read."""
        # a source whose files are read in order has read all files before its newest one
        self.mark_read(
            entry for entry in self.entries if entry.newest is not None and newest.get(entry.source, -1) >= entry.newest
        )

    def due(self, is_drained: Callable[[str, int], bool]) -> PartitionTimes:
        """Return the watermarks that an epoch which begins now may apply, as `Signals.explicit`.

        `is_drained(source, epoch)` tells whether the source had no input in some epoch from `epoch` on. Then all
        earlier input has been read.
        """
        result: dict[str, dict[Partition, dict[str, int]]] = {}
        for entry in self.entries:  # a later entry of a column is higher, so it replaces an earlier one
            if entry.is_read or is_drained(entry.source, entry.epoch):
                result.setdefault(entry.source, {}).setdefault(entry.partition, {})[entry.column] = entry.value
        return result

    def remove_applied(self, applied: PartitionTimes) -> None:
        """Remove the entries that an epoch applied, and those that are not higher."""
        self.entries = [entry for entry in self.entries if not _is_covered(entry, applied)]

    def retain_sources(self, sources: Iterable[str]) -> None:
        """Remove the entries of all other sources."""
        names = set(sources)
        self.entries = [entry for entry in self.entries if entry.source in names]


def _target(entry: PendingWatermark) -> tuple[str, Partition, str]:
    return entry.source, entry.partition, entry.column


def _is_covered(entry: PendingWatermark, applied: PartitionTimes) -> bool:
    value = applied.get(entry.source, {}).get(entry.partition, {}).get(entry.column)
    return value is not None and entry.value <= value


def event_time(source: Source, column: str | None = None) -> str:
    """Return the event-time column with this name, or the only one. Raises `InputError` if there is no such column."""
    known = list(source.watermarks)
    matches = [name for name in known if column is None or name.lower() == column.lower()]
    if len(matches) == 1:
        return matches[0]
    if not known:
        fact, hint = f"`{source.name}` has no event-time column", "declare it: WATERMARK column DELAY OF INTERVAL …"
    elif column is None:
        fact, hint = f"`{source.name}` has more than one event-time column", f"name one of {', '.join(known)}"
    else:
        fact = f"`{column}` is not an event-time column of `{source.name}`"
        hint = near_misses(column, known) or f"name one of {', '.join(known)}"
    raise InputError(fact, detail=f"event-time columns: {', '.join(known) or 'none'}", hint=hint)


def explicit_watermark(source: Source, column: str, time: Any, zone: str = UTC) -> int:
    """Convert an explicit watermark to the unit of its column. Raises `InputError` if it does not fit the column."""
    kind = source.schema.field(column).type
    try:
        if time is None or (isinstance(time, int) and not is_integer(kind)):
            raise TypeError(f"this is of type {type(time).__name__}")  # Arrow would take it, for NULL or microseconds
        value = int(times_of(pa.table({"": pa.array([plain_value(time, kind, zone)], kind)}), "")[0])
    except (ValueError, TypeError, OverflowError) as failure:
        raise InputError(
            f"{time!r} is not a watermark of `{source.name}`.`{column}`, which is of type {spark_name(kind)}",
            detail=str(failure),
            hint="pass an integer" if is_integer(kind) else 'pass a datetime, or text as "2026-01-01 12:00"',
        ) from failure
    if value >= NO_TIME:
        raise InputError(
            f"{time!r} is not a watermark of `{source.name}`.`{column}`",
            detail="an integer of 2^62 or more is not a time",
            hint="pass a smaller one; to say that no rows follow, mark the source idle",
        )
    return value


def plain_value(value: Any, kind: pa.DataType, zone: str = UTC) -> Any:
    """Convert text to a time, and text or a float to a decimal. Raises `ValueError` if the value does not fit.

    A time without a zone is a local time of the flow's zone, if the type is TIMESTAMP.
    """
    if isinstance(value, str | float) and pa.types.is_decimal(kind):
        return Decimal(str(value))
    if isinstance(value, float) and pa.types.is_integer(kind) and not value.is_integer():
        raise ValueError(f"{value!r} is not an integer")  # Arrow would truncate it
    if isinstance(value, float) and pa.types.is_temporal(kind):
        raise ValueError(f"{value!r} is not a time")  # Arrow would take it for microseconds, or days
    if isinstance(value, str) and pa.types.is_timestamp(kind):
        value = datetime.fromisoformat(value)
    if isinstance(value, str) and pa.types.is_date(kind):
        return datetime.fromisoformat(value).date()
    return zoned_value(value, kind, zone)


def zoned_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, zone: str) -> list[Mapping[str, Any]]:
    """Return rows in which every TIMESTAMP without a zone has that of the flow."""
    if zone == UTC:
        return list(rows)
    kinds = {field.name: field.type for field in schema}
    return [{name: zoned_value(value, kinds[name], zone) for name, value in row.items()} for row in rows]


def zoned_value(value: Any, kind: pa.DataType, zone: str) -> Any:
    """Return a value of a type in which every TIMESTAMP without a zone has that of the flow."""
    if zone == UTC or value is None:
        return value
    if isinstance(value, datetime):
        is_local = pa.types.is_timestamp(kind) and kind.tz is not None and value.tzinfo is None
        return value.replace(tzinfo=python_zone(zone)) if is_local else value
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        return {name: zoned_value(part, kind.field(name).type, zone) for name, part in value.items()}
    if pa.types.is_map(kind) and isinstance(value, Mapping):
        pairs = value.items()
        return {zoned_value(key, kind.key_type, zone): zoned_value(item, kind.item_type, zone) for key, item in pairs}
    if pa.types.is_list(kind) and isinstance(value, list | tuple):
        return [zoned_value(item, kind.value_type, zone) for item in value]
    return value

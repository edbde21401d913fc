"""The three renderings of a relation from its changes: TABLE, STREAM and TVR.

The changes are from a view's changelog, or from a replayed query (`engine.queries.change_replay`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.formats.text.plain_rows import Row, Rows, plain_rows, python_rows, sort_key
from rejoinder.formats.text.row_text import plain, table_text, text
from rejoinder.kernels.arrow.columns import DIFF, EPOCH, HASH, diffs, numbers, take, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.zones.zone_labels import table_in_zone
from rejoinder.kernels.zones.zone_offsets import UTC, arrow_zone, python_zone
from rejoinder.sql.statements.stream_columns import System
from rejoinder.state.reading.changelog_reader import (
    expanded,
    from_start,
    history_start,
    read_changes,
    read_table,
    time_zone,
    timeline_of,
)
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.object_store import ObjectStore

CHANGE_COLUMNS = pa.schema(
    [
        ("_epoch", pa.int64()),
        ("_emit_time", pa.timestamp("us", tz="UTC")),
        ("_undo", pa.bool_()),
        ("_diff", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Snapshot:
    """A relation's rows between two commits; `until` is None while they last."""

    epoch: int
    since: datetime | None
    until: datetime | None
    rows: list[Row]

    @property
    def period(self) -> str:
        """The period of the snapshot as text."""
        since = "the beginning" if self.since is None else text(self.since)
        until = "now" if self.until is None else text(self.until)
        return f"from {since}{'' if self.epoch < 0 else f' (epoch {self.epoch})'} to {until}"


class Snapshots(list[Snapshot]):
    """A TVR: the sequence of snapshots; as text, one aligned table after the other, each with its period."""

    def __init__(self, snapshots: Iterable[Snapshot], columns: Sequence[str]) -> None:
        super().__init__(snapshots)
        self.columns = list(columns)

    def __str__(self) -> str:
        def part(snapshot: Snapshot) -> str:
            return f"{snapshot.period}\n{table_text(snapshot.rows, self.columns) if snapshot.rows else '(empty)'}"

        return "\n\n".join(map(part, self))


@dataclass(frozen=True)
class Changes:
    """The net changes of a relation: its columns with `__epoch` and `__diff`, and commit times in milliseconds.

    If `start` is set, earlier changes are not kept, and the changes of that epoch are the content at that epoch.
    """

    table: pa.Table
    schema: pa.Schema
    times: Mapping[int, int]
    start: int | None = None
    time_zone: str = UTC
    """The zone of the flow, in which rows are shown."""


def changes_of(store: ObjectStore, manifest: Manifest, view: str, schema: pa.Schema) -> Changes:
    """Return all changes of a view in the history."""
    start = history_start(manifest, view)
    table = from_start(read_changes(store, manifest, view, schema, after=-2, until=manifest.epoch), start)
    return Changes(table, schema, timeline_of(manifest).times(store), start, time_zone(manifest))


def settled(changes: Changes) -> pa.Table:
    """Return the rows after all changes."""
    rows = consolidate(without(changes.table, [EPOCH, HASH]))
    return without(expanded(rows), [DIFF]).select(changes.schema.names)


# -- TABLE ------------------------------------------------------------------------------------------------------------


def table_rows(store: ObjectStore, manifest: Manifest, view: str, schema: pa.Schema, as_of: int | None) -> Rows:
    """Return TABLE: the rows of the view now, or as of an epoch."""
    rows = expanded(read_table(store, manifest, view, schema, as_of=as_of))
    return plain_rows(table_in_zone(rows, arrow_zone(time_zone(manifest))))


# -- STREAM -----------------------------------------------------------------------------------------------------------


def net_changes(
    store: ObjectStore, manifest: Manifest, view: str, schema: pa.Schema, epoch: int
) -> list[tuple[Row, int]]:
    """Return the net changes of one epoch, retractions first."""
    changes = read_changes(store, manifest, view, schema, after=epoch - 1, until=epoch)
    return _signed(changes, time_zone(manifest))


def _signed(changes: pa.Table, zone: str) -> list[tuple[Row, int]]:
    rows = python_rows(table_in_zone(changes, arrow_zone(zone)))
    result = [({k: plain(v) for k, v in row.items() if k not in (DIFF, EPOCH)}, row.get(DIFF, 1)) for row in rows]
    return sorted(result, key=lambda change: (change[1] > 0, sort_key(change[0])))


def described(changes: Changes) -> pa.Table:
    """Return STREAM as Arrow: the columns, then `_epoch`, `_emit_time`, `_undo` and `_diff`; retractions first."""
    epochs, amounts = numbers(changes.table, EPOCH), diffs(changes.table)
    values = _system_values(changes, epochs, amounts)
    rows = without(changes.table, [EPOCH, DIFF]).select(changes.schema.names)
    for field in CHANGE_COLUMNS:
        rows = rows.append_column(field, values.get(field.name[1:], pa.array(amounts)))
    return rows.take(pa.array(np.lexsort((amounts > 0, epochs))))


def filled(changes: Changes, system: Mapping[str, System]) -> pa.Table:
    """Return STREAM as Arrow with the system columns that the query selects, a row for each copy; retractions first."""
    epochs, amounts = numbers(changes.table, EPOCH), diffs(changes.table)
    order = np.repeat(np.lexsort((amounts > 0, epochs)), np.abs(amounts)[np.lexsort((amounts > 0, epochs))])
    values = _system_values(changes, epochs, amounts)
    rows = without(changes.table, [EPOCH, DIFF]).select(changes.schema.names)
    for number, name in enumerate(rows.column_names):
        if name in system:
            rows = rows.set_column(number, name, values[system[name]])
    return take(rows, order)


def _system_values(changes: Changes, epochs: Any, amounts: Any) -> dict[str, pa.Array]:
    times = [changes.times.get(int(epoch)) for epoch in epochs]
    micros = pa.array([None if time is None else time * 1000 for time in times], pa.int64())
    return {
        "epoch": pa.array(epochs, pa.int64()),
        "emit_time": micros.cast(CHANGE_COLUMNS.field("_emit_time").type),
        "undo": pa.array(amounts < 0),
    }


def stream_rows(changes: Changes, system: Mapping[str, System] | None = None) -> Rows:
    """Return STREAM: every change, one row per copy, retractions of an epoch first.

    The last columns are `_epoch`, `_emit_time` and `_undo`; with `system`, only the system columns that it names.
    """
    added = [] if system else [name for name in CHANGE_COLUMNS.names if name != "_diff"]
    result = []
    for epoch, when, signed in epochs_of(changes):
        for row, diff in signed:
            values = {"epoch": epoch, "emit_time": when, "undo": diff < 0}
            if system:
                shown = {name: values[system[name]] if name in system else value for name, value in row.items()}
            else:
                shown = {**row, **{name: values[name[1:]] for name in added}}
            result += [shown] * abs(diff)
    return Rows(result, [*changes.schema.names, *added])


def epochs_of(changes: Changes) -> list[tuple[int, datetime | None, list[tuple[Row, int]]]]:
    """Return the epochs in which a relation changed, with commit time and net changes."""
    grouped: dict[int, list[int]] = {}
    for row, epoch in enumerate(changes.table.column(EPOCH).to_pylist()):
        grouped.setdefault(epoch, []).append(row)
    return [
        (
            epoch,
            moment(changes.times.get(epoch), changes.time_zone),
            _signed(changes.table.take(rows), changes.time_zone),
        )
        for epoch, rows in sorted(grouped.items())
    ]


def moment(milliseconds: int | None, zone: str = UTC) -> datetime | None:
    """Convert a commit time to a datetime of a zone, without it."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, tz=python_zone(zone)).replace(tzinfo=None)


# -- TVR --------------------------------------------------------------------------------------------------------------


def snapshots_of(changes: Changes) -> Snapshots:
    """Return TVR: the sequence of distinct snapshots with their periods.

    The first one is empty, or the content at the epoch at which the history starts.
    """
    first = -1 if changes.start is None else changes.start
    result: list[Snapshot] = [Snapshot(first, moment(changes.times.get(first), changes.time_zone), None, [])]
    rows: dict[tuple[tuple[int, str, Any], ...], tuple[Row, int]] = {}
    for epoch, when, signed in epochs_of(changes):
        for row, diff in signed:
            key = tuple(sort_key(row))
            first_row, count = rows.pop(key, (row, 0))
            if count + diff:
                rows[key] = first_row, count + diff
        shown = sorted((row for row, count in rows.values() for _ in range(count)), key=sort_key)
        if epoch <= first:  # an aggregate without groups has a row before the first epoch
            result = [replace(result[0], rows=shown)]
            continue
        result[-1] = replace(result[-1], until=when)
        result.append(Snapshot(epoch, when, None, shown))
    return Snapshots(result, changes.schema.names)

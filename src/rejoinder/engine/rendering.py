"""The three renderings of a view, from its changelog: TABLE, STREAM and TVR, as plain Python rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from rejoinder.engine.reading import expanded, read_changes, read_table, timeline_of
from rejoinder.kernels.columns import DIFF, EPOCH
from rejoinder.store.manifest import Manifest
from rejoinder.store.objects import ObjectStore

Row = dict[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """A view's rows between two commits; `until` is None while they last."""

    epoch: int
    since: datetime | None
    until: datetime | None
    rows: list[Row]


def plain_rows(table: pa.Table, *, is_ordered: bool = False) -> list[Row]:
    """Rows as dicts of plain values; unless they are ordered, in an order that depends on the values only.

    Times are in UTC, without zone.
    """
    rows: list[Row] = [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]
    return rows if is_ordered else sorted(rows, key=sort_key)


def plain(value: Any) -> Any:
    """A value without time zones."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def sort_key(row: Row) -> list[tuple[int, str, Any]]:
    """Order rows by their values, NULL first and NaN last; rows that SQL calls equal have equal keys."""
    return [_value_key(value) for value in row.values()]


def _value_key(value: Any) -> tuple[int, str, Any]:
    if value is None:
        return 0, "", 0
    if isinstance(value, float) and math.isnan(value):
        return 2, "", 0
    if isinstance(value, bool | int | float):
        return 1, "", value + 0  # -0.0 and 0.0 are one value
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        return 1, type(value).__name__, str([(name, _value_key(item)) for name, item in inner])
    return 1, type(value).__name__, str(value)


def table_rows(store: ObjectStore, manifest: Manifest, view: str, schema: pa.Schema, as_of: int | None) -> list[Row]:
    """TABLE: the rows of the view now, or as of an epoch."""
    return plain_rows(expanded(read_table(store, manifest, view, schema, as_of=as_of)))


def net_changes(
    store: ObjectStore, manifest: Manifest, view: str, schema: pa.Schema, epoch: int
) -> list[tuple[Row, int]]:
    """The net changes of one epoch, retractions first."""
    changes = read_changes(store, manifest, view, schema, after=epoch - 1, until=epoch)
    return _signed(changes)


def _signed(changes: pa.Table) -> list[tuple[Row, int]]:
    rows = changes.to_pylist()
    result = [({k: plain(v) for k, v in row.items() if k not in (DIFF, EPOCH)}, row.get(DIFF, 1)) for row in rows]
    return sorted(result, key=lambda change: (change[1] > 0, sort_key(change[0])))


def stream_rows(store: ObjectStore, manifest: Manifest, view: str, schema: pa.Schema) -> list[Row]:
    """STREAM: every change, one row per copy, with `_epoch`, `_emit_time` and `_undo`; undos of an epoch come first."""
    result = []
    for epoch, when, changes in epochs_of(store, manifest, view, schema):
        for row, diff in changes:
            result += [{**row, "_epoch": epoch, "_emit_time": when, "_undo": diff < 0}] * abs(diff)
    return result


def tvr_snapshots(store: ObjectStore, manifest: Manifest, view: str, schema: pa.Schema) -> list[Snapshot]:
    """TVR: the sequence of different snapshots with the time in which each held; the first is the empty one."""
    result: list[Snapshot] = [Snapshot(-1, None, None, [])]
    rows: dict[tuple[tuple[int, str, Any], ...], tuple[Row, int]] = {}
    for epoch, when, changes in epochs_of(store, manifest, view, schema):
        for row, diff in changes:
            key = tuple(sort_key(row))
            known, count = rows.pop(key, (row, 0))
            if count + diff:
                rows[key] = known, count + diff
        last = result[-1]
        result[-1] = Snapshot(last.epoch, last.since, when, last.rows)
        shown = sorted((row for row, count in rows.values() for _ in range(count)), key=sort_key)
        result.append(Snapshot(epoch, when, None, shown))
    return result


def epochs_of(
    store: ObjectStore, manifest: Manifest, view: str, schema: pa.Schema
) -> list[tuple[int, datetime | None, list[tuple[Row, int]]]]:
    """The epochs in which a view changed, with commit time and net changes."""
    changes = read_changes(store, manifest, view, schema, after=-2, until=manifest.epoch)
    times = timeline_of(manifest).times(store)
    grouped: dict[int, list[int]] = {}
    for at, epoch in enumerate(changes.column(EPOCH).to_pylist()):
        grouped.setdefault(epoch, []).append(at)
    return [(epoch, moment(times.get(epoch)), _signed(changes.take(rows))) for epoch, rows in sorted(grouped.items())]


def moment(milliseconds: int | None) -> datetime | None:
    """A commit time as a datetime in UTC, without zone."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, tz=timezone.utc).replace(tzinfo=None)

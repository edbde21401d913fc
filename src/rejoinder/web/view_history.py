"""A view as it was at an epoch, and its changes between epochs, bounded in rows read and rows returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.engine.engine import Engine
from rejoinder.engine.statements import find_view
from rejoinder.errors import InvalidSql
from rejoinder.formats.text.plain_rows import python_rows
from rejoinder.formats.text.row_text import plain
from rejoinder.kernels.arrow.columns import DIFF, EPOCH, HASH, diffs, numbers, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.sorting import LAST_HASH
from rejoinder.state.reading.changelog_reader import (
    WHOLE,
    changelog_refs,
    check_epoch,
    expanded,
    read_changes,
    read_table,
)
from rejoinder.store.commits.manifest import Manifest

ROWS_READ = 200_000
"""A larger changelog is read in part: all changes of some rows, chosen by hash."""
ROWS_SHOWN = 200
RECENT = 20
"""The changes of this many epochs are shown for one position."""


@dataclass(frozen=True)
class Change:
    """A net change of a row: `diff` copies more or less at `epoch`; None for a difference between two epochs."""

    epoch: int | None
    diff: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class ViewAt:
    """A view at one epoch, or the difference between two."""

    name: str
    columns: tuple[str, ...]
    first: int
    """The first epoch of its history."""
    last: int
    """The newest epoch."""
    epoch: int
    against: int | None
    rows: tuple[tuple[Any, ...], ...]
    total: int
    """The number of rows, of which `rows` are the first ones."""
    changes: tuple[Change, ...]
    changed: int
    """The number of changes, of which `changes` are the first ones."""
    share: float
    """The share of the rows that was read; 1 unless the view is large."""


def view_at(engine: Engine, name: str, epoch: int | None, against: int | None) -> ViewAt:
    """Read a view at an epoch; None means the newest. Raises `UnknownName`, or `NotCommitted` outside the history."""
    stored, schema = find_view(engine, name)
    manifest = engine.version.manifest
    assert manifest is not None, "the state has a commit"
    first = max(0, manifest.extra["since"], manifest.extra["created"].get(stored, -1))
    last = manifest.epoch
    position = last if epoch is None else epoch
    for number in {position, position if against is None else against} - {last}:
        check_epoch(manifest, stored, number)
    hashes, share = _range(manifest, stored)
    table = expanded(read_table(engine.store, manifest, stored, schema, as_of=position, hashes=hashes))
    low, high = sorted((position if against is None else against, position))
    after = max(position - RECENT, manifest.extra["since"], -2) if against is None else low
    changes = read_changes(engine.store, manifest, stored, schema, after=after, until=high, hashes=hashes)
    if against is not None:
        changes = consolidate(without(changes, [EPOCH, HASH]))
        if against > position:
            raise InvalidSql("the other position is later", hint="compare with an earlier epoch")
    return ViewAt(
        stored,
        tuple(schema.names),
        min(first, max(last, 0)),
        last,
        position,
        against,
        plain_values(table.slice(0, ROWS_SHOWN), schema.names),
        table.num_rows,
        _changes(changes, schema.names),
        changes.num_rows,
        share,
    )


def _range(manifest: Manifest, view: str) -> tuple[tuple[int, int], float]:
    """Return the range of row hashes to read, and the share of all rows that it has."""
    rows = sum(ref.rows for ref in changelog_refs(manifest, view))
    if rows <= ROWS_READ:
        return WHOLE, 1.0
    return (0, LAST_HASH * ROWS_READ // rows), ROWS_READ / rows


def plain_values(table: pa.Table, columns: Sequence[str]) -> tuple[tuple[Any, ...], ...]:
    """Return a few rows as values without time zones."""
    return tuple(tuple(plain(row[name]) for name in columns) for row in python_rows(table.select(columns)))


def _changes(table: pa.Table, columns: Sequence[str]) -> tuple[Change, ...]:
    """Return the newest changes first, retractions of an epoch before its additions."""
    amounts = diffs(table)
    has_epochs = EPOCH in table.column_names
    epochs = numbers(table, EPOCH) if has_epochs else np.zeros(len(amounts), dtype=np.int64)
    order = np.lexsort((amounts > 0, -epochs))[:ROWS_SHOWN]
    rows = table.take(pa.array(order))
    signs, times = amounts[order].tolist(), epochs[order].tolist()
    listed = plain_values(without(rows, [DIFF, EPOCH, HASH]), columns)
    return tuple(
        Change(time if has_epochs else None, sign, values)
        for time, sign, values in zip(times, signs, listed, strict=True)
    )

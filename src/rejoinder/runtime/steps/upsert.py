"""Upsert: turn a table's source rows (the newest state of a key, or a tombstone) into changes of the table.

Algebra: output = new content − old content of the changed keys. Within an epoch the last row of a key wins: by the
order column if the table has one, then by the order of arrival. A tombstone without a value in the order column deletes
the rows that arrived before it. Cost follows the changed keys.

The order of a tombstone is known only in its own epoch: no state is kept of a key without a row, so an older row that
arrives later counts as new.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.errors import NullKey, Unsupported
from rejoinder.kernels.arrow.columns import (
    DIFF,
    HASH,
    SEQUENCE,
    Int64,
    contiguous,
    diffs,
    has_diffs,
    hashes,
    numbers,
    replaced,
    single_chunk,
    take,
    without,
)
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.probe import match
from rejoinder.kernels.arrow.sorting import rank_values
from rejoinder.plan.physical.steps import Upsert
from rejoinder.runtime.task import Task, key_columns, partition_hashes


def upsert(task: Task, step: Upsert) -> None:
    """Run the step; the output stream carries `__hash` of the primary key."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    key = step.arrangement.key
    if SEQUENCE not in stream.column_names and has_diffs(stream):  # changes of a relation, which may cancel out
        stream = consolidate(stream)
        stream = take(stream, np.flatnonzero(diffs(stream) > 0))
    if HASH not in stream.column_names:
        stream = stream.append_column(HASH, pa.array(partition_hashes(stream, key)[0]))
    for number, (part, column) in enumerate(zip(key.parts, key_columns(stream, key), strict=True)):
        if column.null_count and number not in key.null_safe:
            name = part.columns[0]
            row = without(take(stream, np.flatnonzero(np.asarray(column.is_null()))[:1]), [HASH, DIFF, SEQUENCE])
            raise NullKey(
                f"NULL in the primary key of `{step.arrangement.relation}`",
                detail=f"column `{name}`",
                values=f"row {row.to_pylist()[0]}",
                hint="filter out such rows upstream, or declare the source as a STREAM or CHANGELOG",
            )
    if step.whole and step.order is None:
        _refuse_unordered(stream, step)
    old = _current(task, stream, step)
    incoming = without(_ranked(stream, old, step), [SEQUENCE])
    newest = take(incoming, np.flatnonzero(diffs(incoming) > 0))
    change = contiguous([without(newest, [DIFF]), replaced(old, DIFF, -diffs(old))]) if old.num_rows else newest
    # The hash is a function of the key, so consolidating by payload keeps it valid.
    change = consolidate(change)
    if change.num_rows:
        task.streams[step.output] = change


def _refuse_unordered(stream: pa.Table, step: Upsert) -> None:
    """Raise `Unsupported` if a key has several rows whose order of arrival is unknown."""
    rows = consolidate(without(stream, [HASH, SEQUENCE]))
    groups = group_rows(rows, _names(step))
    duplicates = np.flatnonzero(np.bincount(groups.group_of, minlength=len(groups.starts)) > 1)
    if len(duplicates):
        row = int(np.flatnonzero(groups.group_of == duplicates[0])[0])
        values = [rows.column(name)[row].as_py() for name in _names(step)]
        raise Unsupported(
            "the last row of a key is not known among rows that were read before",
            detail=f"{len(duplicates)} key(s) have several rows, and their order of arrival is not stored",
            values=f"key {values!r}",
            hint="add an order column, or create the view before the rows are read",
        )


def _current(task: Task, stream: pa.Table, step: Upsert) -> pa.Table:
    """Return the rows of the changed keys before this epoch."""
    keys = np.unique(hashes(stream))
    schema = without(stream, [DIFF, SEQUENCE]).schema
    parts = []
    for run in task.runs(step.arrangement, after=False):
        _, right = match(keys, hashes(run))
        if len(right):
            parts.append(take(run, right))
    if not parts:
        return schema.empty_table()
    rows = consolidate(contiguous(parts))
    if step.arrangement.key.exact and not step.arrangement.key.null_safe:
        return rows
    # Hashes may collide, so compare the keys themselves.
    groups = group_rows(contiguous([without(stream, [DIFF, SEQUENCE]), rows.select(schema.names)]), _names(step))
    is_changed = np.zeros(len(groups.starts), bool)
    is_changed[groups.group_of[: stream.num_rows]] = True
    return take(rows, np.flatnonzero(is_changed[groups.group_of[stream.num_rows :]]))


def _names(step: Upsert) -> list[str]:
    return [part.columns[0] for part in step.arrangement.key.parts]


def _ranked(stream: pa.Table, old: pa.Table, step: Upsert) -> pa.Table:
    """Return the last row of each key; with an order column, the current row of the key takes part."""
    candidates = stream if DIFF in stream.column_names else replaced(stream, DIFF, np.ones(stream.num_rows, np.int64))
    sequence = numbers(stream, SEQUENCE) if SEQUENCE in stream.column_names else np.zeros(stream.num_rows, np.int64)
    candidates = without(candidates, [SEQUENCE])
    if step.order is not None and old.num_rows:
        candidates = contiguous([replaced(old, DIFF, np.ones(old.num_rows, np.int64)), candidates])
        sequence = np.concatenate([np.full(old.num_rows, np.iinfo(np.int64).min), sequence])
    groups = group_rows(candidates, _names(step))
    order = np.lexsort((np.arange(candidates.num_rows), sequence, groups.group_of))
    group = groups.group_of[order]
    if step.order is not None:
        rank = rank_values(single_chunk(candidates.column(step.order)))[order]
        is_unordered = (diffs(candidates) < 0) & np.asarray(candidates.column(step.order).is_null())
        rank = np.where(is_unordered[order], _highest_so_far(rank, group), rank)
        order = order[np.lexsort((np.arange(len(order)), rank, group))]
    ends = np.append(np.flatnonzero(np.diff(group)), len(order) - 1)
    return take(candidates, order[ends])


def _highest_so_far(rank: Int64, group: Int64) -> Int64:
    """Return the running maximum of the ranks within each group; groups ascend."""
    base = group * (len(rank) + 1)
    return np.maximum.accumulate(base + rank) - base

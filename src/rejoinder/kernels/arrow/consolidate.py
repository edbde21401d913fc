"""Consolidate: sum the diffs of equal rows and drop those that are zero.

Algebra: the result denotes the same multiset as the input, has no two equal rows and no zero; consolidating twice
changes nothing. Cost: O(n log n), vectorised; a collision of row hashes costs a loop over the colliding rows only.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import (
    DIFF,
    EPOCH,
    Int64,
    UInt64,
    diffs,
    payload_names,
    replaced,
    single_chunk,
    take,
)
from rejoinder.kernels.arrow.equality import identity, not_distinct
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.sorting import group_starts, order_by_hash


def row_hashes(table: pa.Table) -> UInt64:
    """Hash the payload of each row (and its epoch, in a changelog)."""
    names = payload_names(table) + ([EPOCH] if EPOCH in table.column_names else [])
    return hash_rows([table.column(name) for name in names], table.num_rows)


def consolidate(table: pa.Table) -> pa.Table:
    """Return the net rows: equal rows (payload and epoch) become one; the result is sorted by row hash."""
    if not table.num_rows:
        return table
    hashes = row_hashes(table)
    order = order_by_hash(hashes)
    return _net(take(table, order), hashes[order])


def consolidate_groups(table: pa.Table, hashes: UInt64, order: Int64 | None = None) -> pa.Table:
    """Consolidate a table sorted by key hash, and keep that order; keys without a negative diff are not changed.

    `order` sorts table and hashes first; a row is gathered once, whether it is sorted, consolidated or both. An
    append-only relation costs one pass over its diffs; otherwise cost follows the keys with a retraction.
    """
    multiplicity = diffs(table)
    if not len(multiplicity) or multiplicity.min() > 0:
        return table if order is None else take(table, order)
    if order is not None:
        hashes, multiplicity = hashes[order], multiplicity[order]
    starts = group_starts(hashes)
    has_retraction = np.minimum.reduceat(multiplicity, starts) <= 0
    lengths = np.diff(np.append(starts, len(hashes)))
    is_affected = np.repeat(has_retraction, lengths)
    rows = np.flatnonzero(is_affected)
    net_rows, net_diffs = surviving(take(table, rows if order is None else order[rows]))
    keep = np.concatenate([np.flatnonzero(~is_affected), rows[net_rows]])
    values = np.concatenate([multiplicity[~is_affected], net_diffs])
    place = np.argsort(keep, kind="stable")
    keep = keep[place]
    return replaced(take(table, keep if order is None else order[keep]), DIFF, values[place])


def surviving(table: pa.Table) -> tuple[Int64, Int64]:
    """Return the position of the first row of each group of equal rows with a non-zero sum, and that sum."""
    hashes = row_hashes(table)
    order = order_by_hash(hashes)
    starts, sums = _sums(take(table, order), hashes[order])
    alive = sums != 0
    return order[starts[alive]], sums[alive]


def _net(table: pa.Table, hashes: UInt64) -> pa.Table:
    starts, sums = _sums(table, hashes)
    alive = sums != 0
    if len(starts) == table.num_rows and bool(alive.all()):
        return table
    return replaced(take(table, starts[alive]), DIFF, sums[alive])


def _sums(table: pa.Table, hashes: UInt64) -> tuple[Int64, Int64]:
    """Group a table sorted by row hash into equal rows: first position and summed diff of each group."""
    same_hash = hashes[1:] == hashes[:-1]
    if not same_hash.any():
        return np.arange(table.num_rows), diffs(table)
    compared = [*payload_names(table), *([EPOCH] if EPOCH in table.column_names else [])]
    near = np.flatnonzero(same_hash)
    left, right = pa.array(near), pa.array(near + 1)
    same_row = np.ones(len(near), bool)
    for name in compared:
        column = single_chunk(table.column(name))
        same_row &= not_distinct(column.take(left), column.take(right))
    if not same_row.all():
        return _sums_colliding(table, hashes, compared)
    starts = np.flatnonzero(np.concatenate([[True], ~same_hash]))
    return starts, np.add.reduceat(diffs(table), starts)


def _sums_colliding(table: pa.Table, hashes: UInt64, compared: list[str]) -> tuple[Int64, Int64]:
    """Return the same as `_sums` if different rows share a hash, so that equal rows need not be adjacent."""
    multiplicity = diffs(table)
    rows = table.select(compared).to_pylist()
    groups: dict[tuple[int, str], list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault((int(hashes[number]), identity(row)), []).append(number)
    starts = np.array([members[0] for members in groups.values()], np.int64)
    sums = np.array([int(multiplicity[members].sum()) for members in groups.values()], np.int64)
    return starts, sums

"""Number the groups of rows with equal values, exactly: a hash collision never joins two groups.

Cost: O(n log n), vectorised; a collision costs a loop over the colliding rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import Int64, single_chunk
from rejoinder.kernels.arrow.equality import identity, not_distinct
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.sorting import order_by_hash


@dataclass(frozen=True)
class Groups:
    """`group_of[row]` is the group number of each row; `starts[group]` is a row of the group."""

    group_of: Int64
    starts: Int64


def group_rows(table: pa.Table, names: Sequence[str]) -> Groups:
    """Group the rows of a table by the named columns; NULL equals NULL."""
    columns = [single_chunk(table.column(name)) for name in names]
    hashes = hash_rows(columns, table.num_rows)
    order = order_by_hash(hashes)
    ordered = hashes[order]
    new_hash = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(order) else np.zeros(0, bool)
    near = np.flatnonzero(~new_hash)
    same = np.ones(len(near), bool)
    for column in columns:
        same &= not_distinct(column.take(pa.array(order[near - 1])), column.take(pa.array(order[near])))
    if not same.all():
        return _colliding(table.select(list(names)))
    group_of = np.empty(len(order), np.int64)
    group_of[order] = np.cumsum(new_hash) - 1
    return Groups(group_of, order[np.flatnonzero(new_hash)])


def _colliding(table: pa.Table) -> Groups:
    numbers: dict[str, int] = {}
    starts: list[int] = []
    group_of = np.empty(table.num_rows, np.int64)
    for index, row in enumerate(table.to_pylist()):
        number = numbers.setdefault(identity(row), len(numbers))
        if number == len(starts):
            starts.append(index)
        group_of[index] = number
    return Groups(group_of, np.array(starts, np.int64))

"""Changed rows with their sort keys, sorted as they lie in an arrangement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.ir.window_calls import Reach
from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64, diffs, hashes, replaced, single_chunk, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.ordered import as_column, order_values, sorted_by_hash_and_value
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.windows.slices import ORDER
from rejoinder.plan.physical.arrangement import Key
from rejoinder.plan.physical.window_steps import Sorting
from rejoinder.runtime.task import partition_hashes

_FLOOR = "floor"
_LAST = pa.scalar(b"\xff", pa.binary())
"""Greater than every byte with which a part of a sort key begins."""


@dataclass(frozen=True)
class Keyed:
    """The net change of a relation, with hash and sort key, in the order of both."""

    rows: pa.Table
    sorting: Sorting
    order: str = ORDER
    """The column with the keys."""

    @cached_property
    def floor(self) -> pa.Array:
        """A key before all keys of the partition of each row."""
        return single_chunk(project(self.rows, [(_FLOOR, self.sorting.floor)]).column(_FLOOR))

    @cached_property
    def ceiling(self) -> pa.Array:
        """A key after all keys of the partition of each row."""
        return _after(self.floor)

    @cached_property
    def begins_partition(self) -> Mask:
        """Whether a row is the first of its partition."""
        keys = hashes(self.rows)
        floor = self.floor
        result = np.ones(len(keys), bool)
        result[1:] = (keys[1:] != keys[:-1]) | ~np.asarray(pc.equal(floor[1:], floor[:-1]))
        return result

    @cached_property
    def partition(self) -> Int64:
        """The number of the partition of each row."""
        return np.cumsum(self.begins_partition) - 1

    def selected(self, rows: Int64) -> Keyed:
        """Some of the rows, ascending."""
        return Keyed(take(self.rows, rows), self.sorting, self.order)

    def interval(self, reach: Reach) -> tuple[pa.Array, pa.Array]:
        """The keys between which every row is reached because of its order value, or the key of the row itself."""
        if not reach.groups:
            key = single_chunk(self.rows.column(self.order))
            return key, key
        if not reach.distance:
            group = self._group(self.rows)
            return group, _after(group)
        low, high = self._moved(-reach.distance), self._moved(reach.distance)
        if self.sorting.columns[0].descending:
            low, high = high, low
        return self._group(low), _after(self._group(high))

    def _group(self, rows: pa.Table) -> pa.Array:
        return single_chunk(project(rows, [(_FLOOR, self.sorting.group)]).column(_FLOOR))

    def _moved(self, distance: int | float) -> pa.Table:
        """The rows with another order value: so much greater, NULL where it is NULL."""
        name = self.sorting.columns[0].name
        column = single_chunk(self.rows.column(name))
        if pa.types.is_floating(column.type):
            return replaced(self.rows, name, pc.add(column, pa.scalar(distance, column.type)))
        ends, by = np.iinfo(np.int64), int(distance)
        values = order_values(column).astype(np.int64)
        values = values.clip(ends.min - min(by, 0), ends.max - max(by, 0)) + by
        return replaced(self.rows, name, as_column(values, column.type, np.asarray(column.is_valid())))


def keyed(
    stream: pa.Table | None, sorting: Sorting, key: Key, order: str = ORDER, *, repeats: bool = False
) -> Keyed | None:
    """Return the net change that a stream holds, None if there is none; keys that it does not have are computed.

    With `repeats`, equal rows remain apart if the stream retracts nothing, so that rows need not be compared.
    """
    if stream is None or not stream.num_rows:
        return None
    if HASH not in stream.column_names:
        stream = stream.append_column(HASH, pa.array(partition_hashes(stream, key)[0]))
    count = diffs(stream)
    rows = replaced(stream, DIFF, count)
    if not repeats or int(count.min()) < 0:
        rows = consolidate(rows)
    if not rows.num_rows:
        return None
    if order not in rows.column_names:
        rows = project(rows, [(order, sorting.key)], keep=rows.column_names)
    return Keyed(sorted_by_hash_and_value(rows, order), sorting, order)


def _after(keys: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(keys, _LAST, pa.scalar(b"", pa.binary()))

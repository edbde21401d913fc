"""Values of groups in order: the value at a position, and lists of all values.

A position is found from where it was before. The state of `at` is the key of the value and its rank, the number of
values before it. A change moves the rank by the values that it adds or removes before the key, and the position by the
values that it adds or removes at all; so the new value is at most so many values away, and only these are read. Cost:
O(log n + d) for d changed rows of a group of n values. A list is read whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import Int64, diffs, hashes, single_chunk
from rejoinder.kernels.arrow.sorting import rank_values
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.sums.accumulate import taken
from rejoinder.kernels.windows.slices import Needles, places, read_slices
from rejoinder.plan.blocks.accumulators import Accumulator, OrderColumns
from rejoinder.plan.physical.steps import Aggregate
from rejoinder.runtime.steps.groups.group_changes import GroupChange, GroupsBefore
from rejoinder.runtime.task import Task

_FLOOR = "floor"
_LAST = pa.scalar(b"\xff", pa.binary())
"""Greater than every byte with which a part of a sort key begins."""


def ordered_values(
    task: Task, delta: GroupChange, old: GroupsBefore, step: Aggregate, columns: Mapping[str, pa.Array]
) -> dict[str, pa.Array]:
    """Return the new columns of all accumulators that need the order of values."""
    assert step.order is not None
    arrangement, order = step.order
    runs = [] if step.whole else task.runs(arrangement, after=False)
    groups = _Groups.of(delta, order, runs)
    result: dict[str, pa.Array] = {}
    for accumulator in step.accumulators:
        if accumulator.function == "list":
            result[accumulator.name] = groups.lists(accumulator)
        elif accumulator.function == "at":
            assert accumulator.count is not None
            total = np.asarray(pc.fill_null(columns[accumulator.count], 0))
            result |= groups.values_at(accumulator, position(total, *accumulator.options), old)
    return result


def position(total: Int64, which: str | float, fraction: str | float) -> Int64:
    """The position among so many values, from 0; −1 if there are none.

    `low` and `high` are the neighbours between which a percentile is interpolated, `disc` is the first value up to
    which a fraction of all values lies.
    """
    exact = np.maximum(total - 1, 0) * float(fraction)
    match which:
        case "low":
            place = np.floor(exact)
        case "high":
            place = np.ceil(exact)
        case _:
            place = np.maximum(np.ceil(total * float(fraction)) - 1, 0)
    return np.where(total > 0, place.astype(np.int64), -1)


@dataclass(frozen=True)
class _Local:
    """Values near a key, of all groups: those with a positive weight after the change, in order.

    `rows` are their positions in the tables that were read, `group` the group, `end` the sum of weights up to each row,
    `first` that before each group, and `before` that of the values of each group before its key.
    """

    rows: Int64
    group: Int64
    end: Int64
    first: Int64
    before: Int64


@dataclass(frozen=True)
class _Groups:
    """The changed groups, ascending by hash and key, and their changed rows; `number` has the group of each row."""

    delta: GroupChange
    order: OrderColumns
    runs: list[pa.Table]
    hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]
    floor: pa.Array
    sequence: Int64
    """The numbers in the delta of the groups."""
    number: Int64

    @classmethod
    def of(cls, delta: GroupChange, order: OrderColumns, runs: list[pa.Table]) -> _Groups:
        floor = single_chunk(project(delta.keys, [(_FLOOR, order.floor)]).column(_FLOOR)).cast(pa.binary())
        keys = hashes(delta.keys)
        sequence = np.lexsort((rank_values(floor), keys))
        number = np.empty(len(sequence), np.int64)
        number[sequence] = np.arange(len(sequence))
        return cls(delta, order, runs, keys[sequence], floor.take(pa.array(sequence)), sequence, number[delta.group_of])

    @property
    def ceiling(self) -> pa.Array:
        return pc.binary_join_element_wise(self.floor, _LAST, pa.scalar(b"", pa.binary()))

    def values_at(self, accumulator: Accumulator, wanted: Int64, old: GroupsBefore) -> dict[str, pa.Array]:
        """The values at positions by group of the delta, with the keys and ranks to keep."""
        value, key, rank = accumulator.name, *accumulator.hidden
        at = pa.array(self.sequence)
        pivot = pc.coalesce(old.column(key).cast(pa.binary()).take(at), self.floor)
        rank_before = np.asarray(pc.fill_null(old.column(rank).take(at), 0))
        wanted = wanted[self.sequence]
        keys = single_chunk(self.delta.rows.column(self.order.key)).cast(pa.binary())
        added = diffs(self.delta.rows)
        here, there = places((self.hashes[self.number], keys), (self.hashes[self.number], pivot.take(self.number)))
        moved = np.where(here < there, added * _weights(self.delta.rows, self.order), 0)
        count = len(self.hashes)
        rank_after = rank_before + _sums(self.number, moved, count)
        removed = _sums(self.number, np.maximum(-added, 0), count)
        distance = rank_after - wanted
        has_value = wanted >= 0
        before = np.where(has_value & (distance > 0), distance + removed, 0)
        after = np.where(has_value & (distance <= 0), 2 - distance + removed, 0)  # a row may have no weight
        tables, local = self._near(Needles(self.hashes, self.floor, self.ceiling, pivot, pivot), before, after)
        offset = np.where(has_value, local.first + local.before - distance, 0)
        row = np.where(has_value, np.searchsorted(local.end, offset, "right"), -1)
        found = np.where(has_value, local.rows[row], -1) if len(local.rows) else row
        start = np.append(0, local.end)[np.maximum(row, 0)]
        new_rank = rank_after - local.before + start - local.first
        back = self.number_of_groups
        return {
            value: taken(_column(tables, accumulator.argument), found[back]),
            key: taken(_column(tables, self.order.key), found[back]),
            rank: pa.array(new_rank[back], mask=~has_value[back]),
        }

    def lists(self, accumulator: Accumulator) -> pa.Array:
        """All values of each group, NULL for none."""
        nothing = np.zeros(len(self.hashes), np.int64)
        tables, local = self._near(
            Needles(self.hashes, self.floor, self.ceiling, self.floor, self.ceiling), nothing, nothing
        )
        weights = np.diff(local.end, prepend=0)
        values = _column(tables, accumulator.argument).take(pa.array(np.repeat(local.rows, weights)))
        ends = np.append(local.first, local.end[-1] if len(local.end) else 0)
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)
        back = pa.array(self.number_of_groups)
        sizes = np.diff(ends)[self.number_of_groups]
        return pc.if_else(pa.array(sizes > 0), lists.take(back), pa.scalar(None, lists.type)).cast(accumulator.type)

    @property
    def number_of_groups(self) -> Int64:
        """The place of each group of the delta here."""
        back = np.empty(len(self.sequence), np.int64)
        back[self.sequence] = np.arange(len(back))
        return back

    def _near(self, needles: Needles, before: Int64, after: Int64) -> tuple[list[pa.Table], _Local]:
        """Read values near the keys `needles.low`; the result is in the state after the change.

        Changed rows beyond what was read do no harm: positions are counted from the key.
        """
        count = len(self.hashes)
        keys = single_chunk(self.delta.rows.column(self.order.key)).cast(pa.binary())
        group_keys = needles.low
        changed = pa.concat_arrays([keys, group_keys])
        owner = np.concatenate([self.number, np.arange(count)])
        tables = [self.delta.rows]
        if self.runs:
            found = read_slices(self.runs, needles, before, after, changed, owner, self.order.key)
            tables.append(found.rows)
            place = np.concatenate([found.changed_place[: len(keys)], found.place])
            pivot = found.changed_place[len(keys) :]
            group = np.concatenate([self.number, np.argsort(found.slice_of)[found.row_slice]])
        else:
            (both,) = places((self.hashes[owner], changed))
            place, pivot, group = both[: len(keys)], both[len(keys) :], self.number
        weights = np.concatenate([_weights(table, self.order) * diffs(table) for table in tables])
        sequence = np.argsort(place, kind="stable")
        place, weights, group = place[sequence], weights[sequence], group[sequence]
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        net = np.add.reduceat(weights, starts) if len(starts) else weights
        kept = net > 0
        starts, net = starts[kept], net[kept]
        group = group[starts]
        end = np.cumsum(net)
        first = np.append(0, end)[np.searchsorted(group, np.arange(count))]
        is_before = place[starts] < pivot[group]
        return tables, _Local(sequence[starts], group, end, first, _sums(group, np.where(is_before, net, 0), count))


def _weights(rows: pa.Table, order: OrderColumns) -> Int64:
    return np.asarray(pc.fill_null(single_chunk(rows.column(order.weight)), 0))


def _sums(groups: Int64, numbers: Int64, count: int) -> Int64:
    result = np.zeros(count, np.int64)
    np.add.at(result, groups, numbers)
    return result


def _column(tables: list[pa.Table], name: str) -> pa.Array:
    return pa.concat_arrays([single_chunk(table.column(name)) for table in tables])

"""Slices: the live rows around keys, read from several sorted runs that may retract each other's rows.

A needle is an interval of keys in a partition. It is read with at least so many live rows before and after it, or all
there are. An interval of keys that is seen in every run is seen whole, so the diffs in it add up to its live rows: none
needs to be matched with its retraction to count them. Needles whose intervals overlap make one slice.
Cost: per needle and run a binary search, plus the rows that are read. Where too many of them are dead, twice as many
are read, so d dead rows cost O(d).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.byte_keys import ByteKeys
from rejoinder.kernels.arrow.columns import (
    DIFF,
    Int64,
    UInt64,
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
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.ordered import Ordered, cut, sorted_by_hash_and_value, spans
from rejoinder.kernels.arrow.probe import expand
from rejoinder.kernels.arrow.sorting import rank_values

ORDER = "order"
"""The column with the sort key of a row: its partition, its order values, then all that tells rows apart."""
COPY = "copy"
"""The column that numbers equal rows of the state, from 0."""

SMALL_RUN = 256
"""Rows of a run that is read whole."""


@dataclass(frozen=True)
class Needles:
    """Intervals of keys, ascending by hash of the partition and by key.

    `floor` and `ceiling` are before and after all keys of the partition, `low` and `high` the ends of the interval.
    """

    hashes: UInt64
    floor: pa.Array
    ceiling: pa.Array
    low: pa.Array
    high: pa.Array

    @cached_property
    def partitions(self) -> tuple[Int64, Int64]:
        """The first needle of each partition, and the number of the partition of each needle."""
        begins = np.ones(len(self.hashes), bool)
        begins[1:] = self.hashes[1:] != self.hashes[:-1]
        begins[1:] |= np.asarray(pc.not_equal(self.floor[1:], self.floor[:-1]))
        return np.flatnonzero(begins), np.cumsum(begins) - 1

    def select(self, rows: Int64) -> Needles:
        """Some of the needles."""
        at = pa.array(rows)
        return Needles(
            self.hashes[rows], self.floor.take(at), self.ceiling.take(at), self.low.take(at), self.high.take(at)
        )


@dataclass(frozen=True)
class Slices:
    """Live rows in order, with the slice of each; `place` numbers the different keys, also those of `changed` rows.

    `slice_of` is the slice of each needle. Slices whose first (last) row is that of the partition are `at_start`
    (`at_end`).
    """

    rows: pa.Table
    place: Int64
    row_slice: Int64
    changed_place: Int64
    last_place: Int64
    """The place up to which rows were read, by needle."""
    slice_of: Int64
    at_start: Mask
    at_end: Mask

    @classmethod
    def empty(cls, rows: pa.Table, keys: Int64, count: int) -> Slices:
        """The slices of partitions that have no rows yet; `rows` is a table without any, `keys` places changed rows."""
        none = np.zeros(0, np.int64)
        everything = np.ones(count, bool)
        return cls(rows, none, none, keys, np.arange(count), np.arange(count), everything, everything)


def places(*parts: tuple[UInt64, pa.Array]) -> list[Int64]:
    """Number the different pairs of hash and key, ascending."""
    keys = np.concatenate([hash_ for hash_, _ in parts])
    ranks = rank_values(pa.concat_arrays([key.cast(pa.binary()) for _, key in parts]))
    order = np.lexsort((ranks, keys))
    fresh = (np.diff(keys[order], prepend=keys[:1]) != 0) | (np.diff(ranks[order], prepend=ranks[:1]) != 0)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(fresh)
    return np.split(numbers, np.cumsum([len(key) for _, key in parts])[:-1])


def read_slices(
    tables: Sequence[pa.Table],
    needles: Needles,
    before: Int64,
    after: Int64,
    changed: pa.Array,
    needle_of: Int64 | None = None,
    order: str = ORDER,
) -> Slices:
    """Read the slices of needles with so many live rows `before` and `after` each.

    `changed` are keys to place among the rows, of the needles `needle_of`, or of one needle each. `order` is the column
    with the keys.
    """
    runs = [Ordered.of(table, order) for table in _small_ones_united(tables, order)]
    found = [_Part.of(run, needles, order) for run in runs]
    starts, first_keys, at_start = _extended(found, needles.low, needles.floor, before, later=False)
    ends, last_keys, at_end = _extended(found, needles.high, needles.ceiling, after, later=True)
    parts = []
    for run, low, high in zip(runs, starts, ends, strict=True):
        positions = np.unique(expand(low, low, high - low)[1])
        parts.append(take(run.table, positions))
    rows = _live(parts)
    changed_hashes = needles.hashes if needle_of is None else needles.hashes[needle_of]
    keys = single_chunk(rows.column(order))
    place, changed_place, first, last = places(
        (hashes(rows), keys), (changed_hashes, changed), (needles.hashes, first_keys), (needles.hashes, last_keys)
    )
    sequence = np.lexsort((numbers(rows, COPY), place))
    rows, place = take(rows, sequence), place[sequence]
    slice_of, slice_first = _merged(first, last)
    count = len(slice_first)
    starting, ending = np.zeros(count, bool), np.zeros(count, bool)
    starting[slice_of[at_start]] = True
    ending[slice_of[at_end]] = True
    row_slice = np.searchsorted(slice_first, place, "right") - 1
    return Slices(rows, place, row_slice, changed_place, last, slice_of, starting, ending)


def _small_ones_united(tables: Sequence[pa.Table], order: str) -> list[pa.Table]:
    """The runs, the small ones as one: a search in each of them would cost more than to sort their rows.

    Small epochs leave several such runs on each of the lower levels of a spine.
    """
    small = [table for table in tables if table.num_rows <= SMALL_RUN]
    if len(small) < 2:
        return list(tables)
    large = [table for table in tables if table.num_rows > SMALL_RUN]
    return [*large, sorted_by_hash_and_value(contiguous(small), order)]


def _live(parts: Sequence[pa.Table]) -> pa.Table:
    """The net rows, each as often as there are copies of it, with the numbers of these."""
    rows = contiguous(parts)
    rows = consolidate(rows) if has_diffs(rows) else rows
    if COPY in rows.column_names:
        return without(rows, [DIFF])
    row, copy = expand(np.arange(rows.num_rows), np.zeros(rows.num_rows, np.int64), diffs(rows))
    return replaced(take(without(rows, [DIFF]), row), COPY, copy)


def _merged(first: Int64, last: Int64) -> tuple[Int64, Int64]:
    """Number the unions of intervals that overlap; the number of each interval, and the first place of each union."""
    order = np.argsort(first, kind="stable")
    reach = np.maximum.accumulate(last[order])
    fresh = np.ones(len(order), bool)
    fresh[1:] = first[order][1:] > reach[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(fresh) - 1
    return number, first[order][fresh]


@dataclass(frozen=True)
class _Part:
    """The rows of a run by needle: of its partition from `first` to `end`, of its interval from `low` to `high`."""

    run: Ordered
    keys: pa.Array
    first: Int64
    end: Int64
    low: Int64
    high: Int64

    @classmethod
    def of(cls, run: Ordered, needles: Needles, order: str) -> _Part:
        met = spans(needles.hashes, run)
        first, end = np.zeros(len(needles.hashes), np.int64), np.zeros(len(needles.hashes), np.int64)
        first[met.who], end[met.who] = met.low, met.high
        one, number = needles.partitions
        first, end = first[one], end[one]
        first = cut(run, first, end, ByteKeys.of(needles.floor)[one])
        end = cut(run, first, end, ByteKeys.of(needles.ceiling)[one], right=True)
        first, end = first[number], end[number]
        # Both ends are searched in the whole partition: many needles with one range cost less than one range for each.
        low = cut(run, first, end, ByteKeys.of(needles.low))
        high = cut(run, first, end, ByteKeys.of(needles.high), right=True)
        return cls(run, single_chunk(run.table.column(order)), first, end, low, high)

    def live(self, low: Int64, high: Int64) -> Int64:
        """The sum of the diffs of the rows from `low` to `high`, by needle."""
        if not has_diffs(self.run.table):
            return high - low
        who, rows = expand(np.arange(len(low)), low, high - low)
        return np.bincount(who, self.run.diffs(rows), len(low)).astype(np.int64)


def _extended(
    parts: Sequence[_Part], inner: pa.Array, outer: pa.Array, counts: Int64, *, later: bool
) -> tuple[list[Int64], pa.Array, Mask]:
    """Go from the intervals to the next or previous live rows, `counts` of them or all that the partition has.

    Returns the positions by run, the key that is reached, and which needles have reached the end of the partition.
    """
    size = len(counts)
    origin = [part.high if later else part.low for part in parts]
    limit = [part.end if later else part.first for part in parts]
    result = [at.copy() for at in origin]
    edge = np.arange(size)  # rows of the array below: first the inner keys, then the outer ones, then others
    keys = pa.concat_arrays([inner.cast(pa.binary()), outer.cast(pa.binary())])
    active = np.flatnonzero(counts > 0)
    at_limit = np.zeros(size, bool)
    width = counts.copy()
    while len(active):
        step, nearer = (width[active], np.minimum) if later else (-width[active], np.maximum)
        reached = [nearer(at[active] + step, end[active]) for at, end in zip(origin, limit, strict=True)]
        is_open = [at != end[active] for at, end in zip(reached, limit, strict=True)]
        who, edge_keys = _edges(parts, reached, is_open, later=later)
        live = np.zeros(len(active), np.int64)
        for part, at, start in zip(parts, reached, origin, strict=True):
            there = start[active]
            low, high = part.first[active[who]], part.end[active[who]]
            at[who] = cut(part.run, low, high, ByteKeys.of(edge_keys), right=later)  # all rows with the key of the edge
            live += part.live(there, at) if later else part.live(at, there)
        ended = np.ones(len(active), bool)
        ended[who] = False
        done = ended | (live >= counts[active])
        for at, into in zip(reached, result, strict=True):
            into[active[done]] = at[done]
        at_limit[active[ended]] = True
        edge[active[ended]] = size + active[ended]
        answered = np.flatnonzero(done[who])
        edge[active[who[answered]]] = len(keys) + answered
        keys = pa.concat_arrays([keys, edge_keys])
        active = active[~done]
        width[active] *= 2
    return result, keys.take(pa.array(edge)), at_limit


def _edges(
    parts: Sequence[_Part], reached: Sequence[Int64], is_open: Sequence[Mask], *, later: bool
) -> tuple[Int64, pa.Array]:
    """The key up to which all runs are read: needles that have one, ascending, and the nearest of the runs' keys."""
    who = np.concatenate([np.flatnonzero(mask) for mask in is_open] or [np.zeros(0, np.int64)])
    keys = [
        part.keys.take(pa.array(at[mask] - 1 if later else at[mask]))
        for part, at, mask in zip(parts, reached, is_open, strict=True)
    ]
    together = pa.concat_arrays([pa.array([], pa.binary()), *(key.cast(pa.binary()) for key in keys)])
    ranks = rank_values(together)
    order = np.lexsort((ranks if later else -ranks, who))
    first = np.flatnonzero(np.diff(who[order], prepend=-1))
    return who[order[first]], together.take(pa.array(order[first]))

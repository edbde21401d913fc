"""Order inside a key: rows sorted by (key hash, order value), and ranges of order values found by binary search.

An order column has timestamps, dates, integers, or sort keys (bytes, never NULL). It is searched in place, so that a
search in a memory-mapped run touches O(log n) of its rows. NULL sorts before every value and is within no bounds.
Cost: sorting adds one pass to the sort by hash, and a second sort only of the rows whose key is out of order.
Searches are vectorised over needles: they loop over the steps of a binary search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rejoinder.kernels.arrow.byte_keys import ByteKeys, narrow
from rejoinder.kernels.arrow.columns import Int64, UInt64, diffs, has_diffs, hashes, single_chunk, take
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.probe import expand
from rejoinder.kernels.arrow.sorting import group_starts, is_sorted, order_by_hash, rank_values

LEAST = np.iinfo(np.int64).min
GREATEST = np.iinfo(np.int64).max
PACKED_BITS = 64
FEW_NEEDLES = 64
ROWS_PER_NEEDLE = 16


def order_values(array: pa.Array) -> npt.NDArray[np.signedinteger[Any]]:
    """View a timestamp, date or integer column as integers, without a copy; NULL becomes an arbitrary value."""
    kind = array.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind) or pa.types.is_signed_integer(kind)):
        raise TypeError(f"rows cannot be ordered by {kind}")
    width: npt.DTypeLike = f"i{kind.bit_width // 8}"
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), width)
    return np.frombuffer(data, width)[array.offset : array.offset + len(array)]


def as_column(values: Int64, kind: pa.DataType, known: Mask | None = None) -> pa.Array:
    """Turn integers back into a column, NULL where they are not `known`: the inverse of `bounds_of`.

    Values outside the range of the type are clipped.
    """
    limits = np.iinfo(f"i{kind.bit_width // 8}")
    narrow = np.clip(values, limits.min, limits.max).astype(limits.dtype)
    return pa.array(narrow, mask=None if known is None else ~known).view(kind)


def last_value(kind: pa.DataType) -> int:
    """Return the order value that means "for ever": 9999-12-31 (at midnight), or the largest integer of the type.

    >>> as_column(np.array([last_value(pa.timestamp("us"))]), pa.timestamp("us"))[0].as_py().isoformat()
    '9999-12-31T00:00:00'
    """
    bits: int = kind.bit_width
    if pa.types.is_signed_integer(kind):
        return (1 << (bits - 1)) - 1
    return int(order_values(pa.array([datetime(9999, 12, 31)]).cast(kind))[0])


def bounds_of(column: pa.ChunkedArray | pa.Array) -> tuple[Int64, Mask | None]:
    """Return order values to search for, and a mask of those that are not NULL; None for all."""
    array = single_chunk(column)
    known = np.asarray(array.is_valid()) if array.null_count else None
    return order_values(array).astype(np.int64), known


@dataclass(frozen=True)
class Ordered:
    """A run prepared for searches: the table, its hashes, and its order column with its validity bitmap."""

    table: pa.Table
    hashes: UInt64
    values: Any
    """Integers, or `ByteKeys`: both are indexed by positions, and compared with others of their kind."""
    bitmap: npt.NDArray[np.uint8] | None
    offset: int

    @classmethod
    def of(cls, table: pa.Table, order: str) -> Ordered:
        """Prepare a table that is sorted by hash and `order`."""
        column = single_chunk(table.column(order))
        if pa.types.is_binary(column.type):
            return cls(table, hashes(table), ByteKeys.of(column), None, 0)
        bits = column.buffers()[0]
        bitmap = None if bits is None else np.frombuffer(bits, np.uint8)
        return cls(table, hashes(table), order_values(column), bitmap, column.offset)

    def known(self, rows: Int64) -> Mask:
        """Return a mask of the rows that have an order value."""
        if self.bitmap is None:
            return np.ones(len(rows), bool)
        at = rows + self.offset
        result: Mask = (self.bitmap[at >> 3] >> (at & 7).astype(np.uint8)) & 1 == 1
        return result

    def diffs(self, rows: Int64) -> Int64:
        """Return the diffs of some rows."""
        return diffs(self.table)[rows] if has_diffs(self.table) else np.ones(len(rows), np.int64)


def order_by_hash_and_value(keys: UInt64, column: pa.Array) -> Int64:
    """Return the positions that sort rows by hash, then by value, NULL first; stable."""
    order = order_by_hash(keys)
    is_bytes = pa.types.is_binary(column.type)
    values = rank_values(column) if is_bytes else order_values(column).astype(np.int64)
    known = np.ones(len(order), bool)
    if column.null_count:
        known = np.asarray(column.is_valid())
        values = np.where(known, values, LEAST)
    sorted_keys, sorted_values, sorted_known = keys[order], values[order], known[order]
    falls = sorted_values[1:] < sorted_values[:-1]
    falls |= (sorted_values[1:] == sorted_values[:-1]) & (sorted_known[1:] < sorted_known[:-1])
    wrong = np.flatnonzero(falls & (sorted_keys[1:] == sorted_keys[:-1]))
    if len(wrong):
        starts = group_starts(sorted_keys)
        group = np.unique(np.searchsorted(starts, wrong, "right") - 1)
        sizes = np.diff(np.append(starts, len(order)))[group]
        rows = np.arange(int(sizes.sum())) + np.repeat(starts[group] - (np.cumsum(sizes) - sizes), sizes)
        number = np.repeat(np.arange(len(group)), sizes)
        order[rows] = order[rows[_order_within(number, sorted_values[rows], sorted_known[rows])]]
    return order


def _order_within(group: Int64, values: Int64, known: Mask) -> Int64:
    """Sort rows of ascending groups by value within each group; in one integer if group and value fit into it."""
    low = int(values.min())
    bits = (int(values.max()) - low).bit_length()
    if bits + int(group[-1]).bit_length() < PACKED_BITS and bool(known.all()):
        return np.argsort((group << bits) | (values - low), kind="stable")
    return np.lexsort((known, values, group))


def sorted_by_hash_and_value(table: pa.Table, order: str) -> pa.Table:
    """Sort a delta by its `__hash`, and rows of equal hash by the order column. Cost: one pass if it is sorted."""
    keys, column = hashes(table), single_chunk(table.column(order))
    rows = _order_of_sorted_hashes(keys, column) if is_sorted(keys) else order_by_hash_and_value(keys, column)
    return table.combine_chunks() if bool(np.all(rows[1:] > rows[:-1])) else take(table, rows)


def _order_of_sorted_hashes(keys: UInt64, column: pa.Array) -> Int64:
    """Like `order_by_hash_and_value`, for ascending hashes: only hashes whose byte keys do not ascend are sorted."""
    if not pa.types.is_binary(column.type) or column.null_count:
        return order_by_hash_and_value(keys, column)
    rows = np.arange(len(keys))
    same = np.flatnonzero(keys[1:] == keys[:-1])
    values = ByteKeys.of(column)
    wrong = same[values[same + 1] < values[same]]
    if len(wrong):
        chosen = np.flatnonzero(np.isin(keys, keys[wrong]))
        rows[chosen] = chosen[order_by_hash_and_value(keys[chosen], column.take(pa.array(chosen)))]
    return rows


@dataclass(frozen=True)
class Spans:
    """Rows of a run by needle: needle `who[i]` has the positions from `low[i]` to `high[i]`, exclusive."""

    who: Int64
    low: Int64
    high: Int64

    def select(self, which: Mask) -> Spans:
        """Return a selection of the spans."""
        return self if bool(which.all()) else Spans(self.who[which], self.low[which], self.high[which])


@dataclass(frozen=True)
class Bound:
    """One end of a range per needle. `strict`: exclusive. A needle whose end is not `known` matches nothing."""

    values: Int64
    strict: bool = False
    known: Mask | None = None


def spans(needles: UInt64, run: Ordered) -> Spans:
    """Find the rows that have the hash of each needle and an order value; needles ascend.

    Cost: binary searches for the fewer of distinct needles and rows of the run, plus the needles that are found.
    """
    none = np.zeros(0, np.int64)
    if not len(needles) or not len(run.hashes):
        return Spans(none, none, none)
    starts = group_starts(needles)
    wanted, ends = needles[starts], np.append(starts[1:], len(needles))
    if len(run.hashes) < len(wanted):
        first = group_starts(run.hashes)
        at = np.searchsorted(wanted, run.hashes[first], "left")
        met = np.flatnonzero(wanted[np.minimum(at, len(wanted) - 1)] == run.hashes[first])
        found, low, high = at[met], first[met], np.append(first[1:], len(run.hashes))[met]
    else:
        low = np.searchsorted(run.hashes, wanted, "left")
        found = np.flatnonzero(run.hashes[np.minimum(low, len(run.hashes) - 1)] == wanted)
        low, high = low[found], np.searchsorted(run.hashes, wanted[found], "right")
    if run.bitmap is not None:
        low = cut(run, low, high, None)
    count = ends[found] - starts[found]
    who = np.arange(int(count.sum())) + np.repeat(starts[found] - (np.cumsum(count) - count), count)
    met_all = Spans(who, np.repeat(low, count), np.repeat(high, count))
    return met_all.select(met_all.low < met_all.high)


def cut(run: Ordered, low: Int64, high: Int64, values: Int64 | ByteKeys | None, *, right: bool = False) -> Int64:
    """Find the insertion points of values between positions `low` and `high` of one hash each, like `searchsorted`.

    Without values: the position after the NULLs; with them, there must be none. Cost: log₂ of the longest range, in
    passes over the ranges still open. Where these are few, each pass would cost more than its comparisons: then each
    value is searched by itself. Ranges that many byte keys share are narrowed first.
    """
    low, high = low.copy(), high.copy()
    active = np.flatnonzero(low < high)
    if len(active) < FEW_NEEDLES and values is not None:
        low[active] = _cut_one_by_one(run, low[active], high[active], values[active], right=right)
        return low
    if isinstance(values, ByteKeys):
        low, high = narrow(run.values, values, low, high)
        active = np.flatnonzero(low < high)
    while len(active):
        middle = (low[active] + high[active]) >> 1
        if values is None:
            goes_on = ~run.known(middle)
        else:
            here, wanted = run.values[middle], values[active]
            goes_on = here <= wanted if right else here < wanted
        low[active] = np.where(goes_on, middle + 1, low[active])
        high[active] = np.where(goes_on, high[active], middle)
        active = active[low[active] < high[active]]
    return low


def _cut_one_by_one(run: Ordered, low: Int64, high: Int64, values: Int64 | ByteKeys, *, right: bool) -> list[int]:
    search = bisect_right if right else bisect_left
    straws = _keys(run.values)
    wanted = _keys(values)
    ranges = zip(low.tolist(), high.tolist(), strict=True)
    return [search(straws, wanted[number], first, end) for number, (first, end) in enumerate(ranges)]


class _Keys(Sequence[Any]):
    """Byte keys as a sequence of objects, each made when it is asked for."""

    def __init__(self, keys: ByteKeys) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, row: Any) -> Any:
        return self._keys.key(row)


def _keys(values: Any) -> Any:
    return _Keys(values) if isinstance(values, ByteKeys) else values


def place(run: Ordered, met: Spans, values: Int64, *, right: bool) -> Int64:
    """Find the insertion point of a value in each span that `spans` returned, like `cut`, but faster for many needles.

    Where there are about as many needles as rows of their keys, key and value are packed into one integer, so that a
    single search finds them all.
    """
    fresh = np.concatenate([[True], met.low[1:] != met.low[:-1]]) if len(met.who) else np.zeros(0, bool)
    first = np.flatnonzero(fresh)
    sizes = met.high[first] - met.low[first]
    if len(met.who) < FEW_NEEDLES or int(sizes.sum()) > ROWS_PER_NEEDLE * len(met.who):
        return cut(run, met.low, met.high, values, right=right)
    number = np.cumsum(fresh) - 1
    key, rows = expand(np.arange(len(first)), met.low[first], sizes)
    there = run.values[rows].astype(np.int64)
    least, most = int(there.min()), int(there.max())
    bits = (most - least + 2).bit_length()
    if least == LEAST or most == GREATEST or bits + len(first).bit_length() >= PACKED_BITS:
        return cut(run, met.low, met.high, values, right=right)
    base = least - 1
    straws = (key << bits) | (there - base)
    wanted = (number << bits) | (np.clip(values, base, most + 1) - base)
    found = np.searchsorted(straws, wanted, "right" if right else "left")
    before = np.cumsum(sizes) - sizes
    result: Int64 = found - before[number] + met.low
    return result


def extent(run: Ordered, part: Spans, values: Int64, *, later: bool) -> Int64:
    """Return how many rows up to (`later`: from) a value each span has, counted from its near end, the last row.

    With `later`, the near end is the first row, and rows from there up to the value count. The result is the position
    between those rows and the rest. Cost: log₂ of the rows that count, however long the span is.
    """
    low, high = part.low, part.high
    reach = np.zeros(len(low), np.int64)
    active = np.arange(len(low))
    step = 1
    while len(active):
        active = active[high[active] - low[active] >= step]
        at = low[active] + step - 1 if later else high[active] - step
        inside = run.values[at] <= values[active] if later else run.values[at] >= values[active]
        active = active[inside]
        reach[active] = step
        step *= 2
    if later:
        return cut(run, low + reach, np.minimum(low + np.maximum(2 * reach - 1, 0), high), values, right=True)
    return cut(run, np.maximum(high - np.maximum(2 * reach - 1, 0), low), high - reach, values)


def between(run: Ordered, met: Spans, low: Bound | None, high: Bound | None) -> Spans:
    """Narrow spans to the rows whose order value is within the bounds of their needle."""
    for bound in (low, high):
        if bound is not None and bound.known is not None:
            met = met.select(bound.known[met.who])
    first, last = met.low, met.high
    if low is not None:
        first = place(run, met, low.values[met.who], right=low.strict)
    if low is not None and low is high:  # one value, which most runs do not have: check its insertion point first
        there = np.flatnonzero(first < last)
        there = there[run.values[first[there]] == low.values[met.who[there]]]
        met, first = Spans(met.who[there], met.low[there], last[there]), first[there]
    if high is not None:
        last = place(run, met, high.values[met.who], right=not high.strict)
    return Spans(met.who, first, last).select(first < last)


def rows_at(needles: UInt64, run: Ordered, values: Int64, known: Mask | None) -> Int64:
    """Find the rows that have the hash and order value of any needle, each once; NULL (not `known`) matches NULL."""
    here = Bound(values, known=known)
    at = between(run, spans(needles, run), here, here)
    found = [expand(at.who, at.low, at.high - at.low)[1]]
    if known is not None and run.bitmap is not None:
        without = np.unique(needles[~known])
        low, high = (np.searchsorted(run.hashes, without, side) for side in ("left", "right"))
        found.append(expand(low, low, cut(run, low, high, None) - low)[1])
    return np.unique(np.concatenate(found))


def views(tables: Sequence[pa.Table], order: str) -> list[Ordered]:
    """Prepare several runs, all sorted by hash and `order`."""
    return [Ordered.of(table, order) for table in tables]

"""The values of window calls for sorted rows of slices.

A running call adds to what it had at the row before: `context` rows at the head of a slice that is not at the start of
its partition keep their old values, and the last of them, the *origin*, is what the first new value is made from. At
the start of a partition there is nothing before. All other calls look at rows of the slice only.
Cost: O(n) for counts, ranks and offsets, one pass per digit for sums, O(n log n) for extremes. Never a loop over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.ir.window_calls import WindowCall
from rejoinder.kernels.arrow.columns import Int64, single_chunk
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.sums.accumulate import float_values, ranked, sum_frames, taken
from rejoinder.kernels.sums.float_sums import sum_float_frames
from rejoinder.kernels.sums.sparse_counts import KEPT
from rejoinder.kernels.windows.frames import Sorted

Columns = dict[str, pa.Array]


class SumTooLargeError(Exception):
    """A sum does not fit in its type."""


@dataclass(frozen=True)
class Evaluation:
    """Sorted rows, and what they had before this epoch: row `old_row[i]` of `old`, −1 for a new row.

    `context` is the length of the context of slices.
    """

    rows: Sorted
    old: pa.Table
    old_row: Int64
    context: int

    def values(self, name: str, call: WindowCall) -> Columns:
        """The value of a call for each row, and what else it keeps. Rows of the context may have any.

        Raises `SumTooLargeError`.
        """
        return _FUNCTIONS[call.function](self, name, call)

    @cached_property
    def origin(self) -> Int64:
        """The row before the first new one of each slice, −1 at the start of a partition."""
        at = np.minimum(self.rows.starts + self.context, self.rows.ends) - 1
        return np.where(self.rows.at_start, -1, at)

    @cached_property
    def origin_of(self) -> Int64:
        """The origin of the slice of each row."""
        return self.origin[self.rows.slice_of]

    def column(self, name: str) -> pa.Array:
        """A column of the rows."""
        return single_chunk(self.rows.rows.column(name))

    def carried(self, name: str) -> pa.Array:
        """What each slice has at its origin; NULL at the start of a partition."""
        row = np.where(self.origin < 0, -1, self.old_row[self.origin] if len(self.old_row) else -1)
        return taken(single_chunk(self.old.column(name)), row)

    def carried_number(self, name: str) -> Int64:
        """The number that each row goes on from; zero at the start of a partition."""
        numbers: Int64 = np.asarray(pc.fill_null(self.carried(name), 0)).astype(np.int64)
        return numbers[self.rows.slice_of]

    def frames(self, call: WindowCall) -> tuple[Int64, Int64]:
        """The frame of each row; of a running call, its part after that of the origin."""
        start, end = self.rows.bounds(call.frame)
        if call.is_running:
            at = self.origin_of
            start = np.where(at < 0, start, end[np.maximum(at, 0)])
            end = np.maximum(end, start)
        return start, end


def _count(at: Evaluation, name: str, call: WindowCall) -> Columns:
    start, end = at.frames(call)
    count = end - start if call.argument is None else _known(at, call, start, end)
    if call.is_running:
        count = count + at.carried_number(name)
    return {name: pa.array(count)}


def _known(at: Evaluation, call: WindowCall, start: Int64, end: Int64) -> Int64:
    """How many rows of each frame have a value."""
    assert call.argument is not None
    valid = np.append(0, np.cumsum(np.asarray(at.column(call.argument).is_valid())))
    result: Int64 = valid[end] - valid[start]
    return result


def _sum(at: Evaluation, name: str, call: WindowCall) -> Columns:
    assert call.argument is not None
    frames = at.frames(call)
    values = at.column(call.argument)
    count = _known(at, call, *frames)
    slices = at.rows.slice_of
    if call.is_running:
        count = count + at.carried_number(f"{name}_n")
    hidden: Columns = {f"{name}_n": pa.array(count)}
    none = len(at.rows.starts)
    if pa.types.is_floating(call.type):
        before = at.carried(f"{name}_digits").cast(KEPT) if call.is_running else pa.nulls(none, KEPT)
        digits, sums = sum_float_frames(before, float_values(values)[0], frames, slices)
        hidden[f"{name}_digits"] = digits
        result = pa.array(sums)
    else:
        before = at.carried(name) if call.is_running else pa.nulls(none, call.type)
        result, too_large = sum_frames(before, values, frames, slices)
        if too_large.any():
            raise SumTooLargeError
    result = pc.if_else(pa.array(count > 0), result, pa.scalar(None, result.type)).cast(call.type)
    return {name: result, **(hidden if call.is_running else {})}


def _extreme(at: Evaluation, name: str, call: WindowCall) -> Columns:
    """MIN and MAX: the best rank in the frame, 0 if there is none. Of a running call, the old one is a candidate."""
    assert call.argument is not None
    values = at.column(call.argument)
    before = at.carried(name) if call.is_running else pa.nulls(len(at.rows.starts), values.type)
    ranks, old = ranked(values, before)
    if call.function == "min":  # the smallest rank becomes the largest one; NULL stays 0
        top = max(int(ranks.max(initial=0)), int(old.max(initial=0))) + 1
        ranks, old = (np.where(each > 0, top - each, 0) for each in (ranks, old))
    start, end = at.frames(call)
    best = _running_best(ranks, start, end) if call.is_running else _best(ranks, start, end)
    both = np.concatenate([ranks, old])
    carried = old[at.rows.slice_of]
    best_rank = np.where(best >= 0, ranks[best] if len(ranks) else 0, 0)
    row = np.where(best_rank >= carried, best, len(ranks) + at.rows.slice_of)
    row = np.where((row >= 0) & (both[np.maximum(row, 0)] > 0), row, -1)
    return {name: taken(pa.concat_arrays([values, before]), row)}


def _running_best(ranks: Int64, start: Int64, end: Int64) -> Int64:
    """The row with the largest rank of frames that begin alike in a slice; −1 for none. One pass."""
    width = int(ranks.max(initial=0)) + 1
    fresh = np.zeros(len(ranks) + 1, bool)
    fresh[start] = True
    number = np.cumsum(fresh)[:-1]
    highest = np.maximum.accumulate(number * width + ranks)
    row_of = np.maximum.accumulate(np.where(highest == number * width + ranks, np.arange(len(ranks)), 0))
    return np.where(end > start, row_of[np.maximum(end - 1, 0)], -1)


def _best(ranks: Int64, start: Int64, end: Int64) -> Int64:
    """The row with the largest rank of each frame, −1 for none: from tables of the best of 2, 4, 8 … rows."""
    result = np.full(len(start), -1, np.int64)
    length = end - start
    table = np.arange(len(ranks))
    width = 1
    while True:
        rows = np.flatnonzero((length >= width) & (length < 2 * width))
        left, right = table[start[rows]], table[end[rows] - width]
        result[rows] = np.where(ranks[right] > ranks[left], right, left)
        if not len(length) or int(length.max()) < 2 * width:
            return result
        left, right = table[:-width], table[width:]
        table = np.where(ranks[right] > ranks[left], right, left)
        width *= 2


def _nth(at: Evaluation, name: str, call: WindowCall) -> Columns:
    assert call.argument is not None
    values = at.column(call.argument)
    start, end = at.frames(call)
    counted = np.asarray(values.is_valid()) if call.skips_nulls else np.ones(len(values), bool)
    rows = np.flatnonzero(counted)
    before = np.append(0, np.cumsum(counted))
    seen = at.carried_number(f"{name}_n") if call.is_running else np.zeros(len(start), np.int64)
    wanted = before[start] + call.number - seen - 1
    inside = (wanted >= before[start]) & (wanted < before[end])
    row = np.where(inside, np.append(rows, -1)[np.clip(wanted, -1, len(rows))], -1)
    if not call.is_running:
        return {name: taken(values, row)}
    # What was found before is kept, and rows are counted up to it only.
    row = np.where(seen >= call.number, len(values) + at.rows.slice_of, row)
    count = np.minimum(seen + before[end] - before[start], call.number)
    return {name: taken(pa.concat_arrays([values, at.carried(name)]), row), f"{name}_n": pa.array(count)}


def _last(at: Evaluation, name: str, call: WindowCall) -> Columns:
    assert call.argument is not None
    values = at.column(call.argument)
    start, end = at.frames(call)
    if not call.skips_nulls:
        return {name: taken(values, np.where(end > start, end - 1, -1))}
    valid = np.asarray(values.is_valid())
    latest = np.append(-1, np.maximum.accumulate(np.where(valid, np.arange(len(values)), -1)))[end]
    row = np.where(latest >= start, latest, -1)
    if not call.is_running:
        return {name: taken(values, row)}
    row = np.where(row >= 0, row, len(values) + at.rows.slice_of)
    return {name: taken(pa.concat_arrays([values, at.carried(name)]), row)}


def _offset(at: Evaluation, name: str, call: WindowCall) -> Columns:
    assert call.argument is not None
    values = at.column(call.argument)
    row = np.arange(len(values)) + call.number
    inside = (row >= at.rows.first) & (row < at.rows.end)
    if call.default is None:
        return {name: taken(values, np.where(inside, row, -1))}
    both = pa.concat_arrays([values, at.column(call.default)])
    return {name: taken(both, np.where(inside, row, len(values) + np.arange(len(values))))}


def _rank(at: Evaluation, name: str, call: WindowCall) -> Columns:
    """The number of the first row of the group; within the group of the origin, the rank that it has."""
    hidden = f"{name}_n"
    position = np.arange(at.rows.size)
    base = np.where(at.origin_of < 0, at.rows.first - 1, at.origin_of)
    numbers = at.carried_number(hidden) + position - base
    start = at.rows.group_start
    goes_on = (at.origin_of >= 0) & (start <= at.origin_of)
    ranks = np.where(goes_on, at.carried_number(name), numbers[start])
    return {name: pa.array(ranks), hidden: pa.array(numbers)}


def _dense_rank(at: Evaluation, name: str, call: WindowCall) -> Columns:
    groups = np.cumsum(at.rows.begins_group)
    origin = at.origin_of
    base = np.where(origin < 0, groups[at.rows.first] - 1, groups[np.maximum(origin, 0)])
    return {name: pa.array(at.carried_number(name) + groups - base)}


_FUNCTIONS: Mapping[str, Callable[[Evaluation, str, WindowCall], Columns]] = {
    "count": _count,
    "sum": _sum,
    "min": _extreme,
    "max": _extreme,
    "nth": _nth,
    "last": _last,
    "offset": _offset,
    "rank": _rank,
    "dense_rank": _dense_rank,
}


def new_rows(rows: Sorted, context: int) -> Mask:
    """Which rows are after the context of their slice."""
    result: Mask = (np.arange(rows.size) - rows.first >= context) | rows.at_start[rows.slice_of]
    return result

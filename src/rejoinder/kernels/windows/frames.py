"""Frames: for each of many sorted rows, where the rows begin and end that a window function is about.

Rows are those of slices, in order; a frame never leaves its slice. Positions are exact for rows whose whole frame lies
in the slice, and `complete` says which these are.
Cost: a few passes over the rows; a frame by distance of order values costs a sort of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.ir.window_calls import Frame
from rejoinder.kernels.arrow.columns import Int64, single_chunk
from rejoinder.kernels.arrow.equality import not_distinct
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.ordered import order_values


@dataclass(frozen=True)
class Gathered:
    """Rows of a table by position. A column is gathered when it is read: most functions read none, or one."""

    table: pa.Table
    positions: Int64

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.positions)

    def column(self, name: str) -> pa.Array:
        """A column of the rows."""
        return single_chunk(self.table.column(name)).take(pa.array(self.positions))


@dataclass(frozen=True)
class Sorted:
    """Rows of slices in order. `starts` is the first row of each slice; a slice may have no rows.

    `order` are the columns by which they are sorted within a slice; of a single one, `descending` is the direction.
    """

    rows: pa.Table | Gathered
    starts: Int64
    at_start: Mask
    at_end: Mask
    order: Sequence[str]
    descending: bool = False

    @cached_property
    def size(self) -> int:
        """The number of rows."""
        return int(self.rows.num_rows)

    @cached_property
    def slice_of(self) -> Int64:
        """The slice of each row."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)

    @cached_property
    def ends(self) -> Int64:
        """The end of each slice, exclusive."""
        return np.append(self.starts[1:], self.size)

    @cached_property
    def first(self) -> Int64:
        """The first row of the slice of each row."""
        return self.starts[self.slice_of]

    @cached_property
    def end(self) -> Int64:
        """The end of the slice of each row, exclusive."""
        return self.ends[self.slice_of]

    @cached_property
    def begins_group(self) -> Mask:
        """Whether a row is the first of its slice with its order values."""
        result = np.zeros(self.size, bool)
        result[self.starts[self.starts < self.ends]] = True
        for name in self.order:
            values = single_chunk(self.rows.column(name))
            result[1:] |= ~not_distinct(values[:-1], values[1:])
        return result

    @cached_property
    def group_start(self) -> Int64:
        """The first row of the slice with the order values of each row."""
        return np.maximum.accumulate(np.where(self.begins_group, np.arange(self.size), 0))

    @cached_property
    def group_end(self) -> Int64:
        """The row after the last row of the slice with the order values of each row."""
        starts = np.flatnonzero(self.begins_group)
        result: Int64 = np.append(starts[1:], self.size)[np.cumsum(self.begins_group) - 1]
        return result

    def bounds(self, frame: Frame) -> tuple[Int64, Int64]:
        """The first row of the frame of each row, and the row after its last."""
        start, end = self.first, self.group_end
        match frame.unit:
            case "rows":
                at = np.arange(self.size)
                start = start if frame.start is None else at + int(frame.start)
                end = at + int(frame.end) + 1
            case "groups":
                start = start if frame.start is None else self.group_start
            case "range":
                start = start if frame.start is None else self._at_distance(frame.start, right=False)
                end = self._at_distance(frame.end, right=True)
        start = np.clip(start, self.first, self.end)
        return start, np.clip(end, start, self.end)

    def complete(self, frame: Frame) -> Mask:
        """Which rows have their whole frame by value in the slice, but for a start that is that of the partition."""
        if frame.unit == "rows":
            return np.ones(self.size, bool)
        start, end = self.bounds(frame)
        starts = (start > self.first) | self.at_start[self.slice_of] | (frame.start is None)
        return starts & ((end < self.end) | self.at_end[self.slice_of])

    def _at_distance(self, distance: int | float, *, right: bool) -> Int64:
        """Find where the value of each row plus a distance goes in its slice; NULL and NaN are near themselves only."""
        (name,) = self.order
        column = single_chunk(self.rows.column(name))
        known = np.asarray(column.is_valid())
        values = self._ascending(column)
        if values.dtype == np.float64:
            known = known & ~np.isnan(values)
        wanted = _moved(values, distance)
        together = np.unique(np.concatenate([values[known], wanted[known]]), return_inverse=True)[1]
        count = int(known.sum())
        width = 2 * count + 1
        rows = np.flatnonzero(known)
        straws = self.slice_of[rows] * width + together[:count]
        found = np.searchsorted(straws, self.slice_of[rows] * width + together[count:], "right" if right else "left")
        result: Int64 = (self.group_end if right else self.group_start).copy()
        # Before the first or after the last of these rows in the slice, this is outside of it.
        result[rows] = np.append(0, rows + 1)[found] if right else np.append(rows, self.size)[found]
        return result

    def _ascending(self, column: pa.Array) -> npt.NDArray[Any]:
        """The order values as numbers that ascend within a slice; zero for NULL."""
        if pa.types.is_floating(column.type):
            floats = np.asarray(pc.fill_null(column, 0.0)).astype(np.float64)
            return -floats if self.descending else floats
        integers = np.where(np.asarray(column.is_valid()), order_values(column).astype(np.int64), 0)
        # The complement reverses the order like the negative, and has no overflow.
        return ~integers if self.descending else integers


def _moved(values: npt.NDArray[Any], distance: int | float) -> npt.NDArray[Any]:
    """Add a distance; integers stay within 64 bits."""
    if values.dtype == np.float64:
        return values + distance
    ends = np.iinfo(np.int64)
    by = int(distance)
    return values.clip(ends.min - min(by, 0), ends.max - max(by, 0)) + by

"""Time segments: an arrangement with a time bound is cut by time, so that what is over is dropped whole.

Invariants:
- a run holds rows of one segment, and runs of different segments are never merged with each other;
- segment s holds the times from s·width to (s+1)·width − 1; a segment that ends at or before the bound is dropped by
  forgetting its references: no row is read;
- a row that is below the bound when it comes goes to a segment that is over: it can be met within its epoch, and is
  dropped at the end of it;
- rows below the bound in a segment that goes on are left out when the segment is next merged (`keep_from`), and readers
  must not count on them being gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.columns import Int64, single_chunk, take
from rejoinder.store.run import RunRef
from rejoinder.store.spine import Spine

TIMELESS = 1 << 62
LONG_AGO = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Segments:
    """How an arrangement is cut by time: the column, and the width in the column's own unit."""

    column: str
    width: int

    def split(self, table: pa.Table, bound: int = LONG_AGO) -> Iterator[tuple[int, pa.Table]]:
        """Cut a table into segments, the order of rows kept. Rows without a time are never over.

        Rows below the `bound` go to a segment that is over there, whatever their time.
        """
        if not table.num_rows:
            return
        numbers = self.numbers(table)
        if bound > LONG_AGO:
            numbers = np.where(times_of(table, self.column) < bound, bound // self.width - 1, numbers)
        if numbers[0] == numbers[-1] and bool(np.all(numbers == numbers[0])):
            yield int(numbers[0]), table
            return
        for number in np.unique(numbers):
            yield int(number), take(table, np.flatnonzero(numbers == number))

    def numbers(self, table: pa.Table) -> Int64:
        """The segment of each row."""
        times = times_of(table, self.column)
        result: Int64 = np.where(times == TIMELESS, TIMELESS, times // self.width)
        return result

    def is_over(self, ref: RunRef, bound: int) -> bool:
        """Whether no row of a run reaches the bound."""
        return ref.segment != TIMELESS and (ref.segment + 1) * self.width <= bound

    def expire(self, spine: Spine, bound: int) -> tuple[Spine, tuple[RunRef, ...]]:
        """Drop the runs that are over; give what is left, and what was dropped."""
        dropped = tuple(ref for ref in spine.refs if self.is_over(ref, bound))
        kept = tuple(ref for ref in spine.refs if not self.is_over(ref, bound))
        return Spine(kept, spine.credit), dropped

    def keep_from(self, table: pa.Table, bound: int) -> pa.Table:
        """Leave out the rows below the bound: what a merge does with a segment that goes on."""
        kept = np.flatnonzero(times_of(table, self.column) >= bound)
        return table if len(kept) == table.num_rows else take(table, kept)


def times_of(table: pa.Table, column: str) -> Int64:
    """A time column as integers: days of dates, microseconds of timestamps; the time of a window is its start."""
    values = single_chunk(table.column(column))
    if pa.types.is_struct(values.type):
        values = pc.struct_field(values, "start")
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    result: Int64 = values.cast(pa.int64()).fill_null(TIMELESS).to_numpy()
    return result

"""Time segments: what is taken out by time is cut by time, so that it is found, and dropped, without reading the rest.

Invariants:
- a run holds rows of one segment, and runs of different segments are never merged with each other;
- segment s holds the times from s·width to (s+1)·width − 1; a segment that ends at or before the bound is dropped by
  forgetting its references: no row is read.

What is only forgotten by time, and looked up by key, is not cut: there the span of each run is enough (`store.spine`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.kernels.columns import Int64, take
from rejoinder.store.run import RunRef
from rejoinder.store.spine import Spine
from rejoinder.store.times import TIMELESS, times_of


@dataclass(frozen=True)
class Segments:
    """How an arrangement is cut by time: the column, and the width in the column's own unit."""

    column: str
    width: int

    def split(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Cut a table into segments, the order of rows kept. Rows without a time are never over."""
        if not table.num_rows:
            return
        numbers = self.numbers(table)
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

"""Time segments: split rows that are read by time into runs by time, so that a read touches few other rows.

Invariants:
- a run holds rows of one segment, and runs of different segments are never compacted together;
- a segment is an aligned interval of times whose width is a power of two. The width follows from the rows of one
  epoch: few rows do not make many files, and many rows do not make one file that is read over and over;
- the span of a run, not its segment, says which times it holds.

Arrangements that expire by time but are looked up by key are not segmented: the span of each run suffices (`spine`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import take
from rejoinder.store.runs.time_values import NO_TIME, times_of

ROWS = 1 << 14
MOST = 64
_WIDTHS = 64


def segments(table: pa.Table, column: str) -> Iterator[tuple[int, pa.Table]]:
    """Yield segment number and rows: about `ROWS` rows each, in their order. Rows with NULL are a segment of their own.

    Yields at most `MOST` segments of rows that have a time, or few more.
    """
    if not table.num_rows:
        return
    times = times_of(table, column)
    timed = times[times != NO_TIME]
    pieces = min(MOST, max(1, len(timed) // ROWS))
    width = 0 if not len(timed) else (int(timed.max() - timed.min()) // pieces).bit_length()
    numbers = np.where(times == NO_TIME, NO_TIME, (times >> width) * _WIDTHS + width)
    first = int(numbers[0])
    if bool(np.all(numbers == first)):
        yield first, table
        return
    for number in np.unique(numbers):
        yield int(number), take(table, np.flatnonzero(numbers == number))

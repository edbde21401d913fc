"""Time segments: what is taken out by time is cut by time, so that little else is read with it.

Invariants:
- a run holds rows of one segment, and runs of different segments are never merged with each other;
- a segment is an aligned interval of times whose width is a power of two: as wide as the rows that come together
  suggest, so that few rows do not make many files, nor many rows one that is read again and again;
- the span of a run, not its segment, tells what is in it.

What is only forgotten by time, and looked up by key, is not cut: there the span of each run is enough (`spine`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import take
from rejoinder.store.runs.time_values import TIMELESS, times_of

ROWS = 1 << 14
MOST = 64
_WIDTHS = 64


def segments(table: pa.Table, column: str) -> Iterator[tuple[int, pa.Table]]:
    """Cut a table by time into segments of some `ROWS` rows, the order of rows kept. Rows without a time are apart."""
    if not table.num_rows:
        return
    times = times_of(table, column)
    known = times[times != TIMELESS]
    pieces = min(MOST, max(1, len(known) // ROWS))
    width = 0 if not len(known) else (int(known.max() - known.min()) // pieces).bit_length()
    numbers = np.where(times == TIMELESS, TIMELESS, (times >> width) * _WIDTHS + width)
    first = int(numbers[0])
    if bool(np.all(numbers == first)):
        yield first, table
        return
    for number in np.unique(numbers):
        yield int(number), take(table, np.flatnonzero(numbers == number))

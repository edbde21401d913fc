"""Times of rows as integers, and the span of times in a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import Int64, single_chunk
from rejoinder.kernels.arrow.hashing import Mask

NO_TIME = 1 << 62
"""The time of a row with NULL. Times are capped at it: it is later than any bound, so such rows never expire."""


def times_of(table: pa.Table, column: str) -> Int64:
    """Return a time column as integers: days for dates, microseconds for timestamps, `NO_TIME` for NULL.

    The time of a window is its start.
    """
    values = single_chunk(table.column(column))
    if pa.types.is_struct(values.type):
        values = pc.struct_field(values, "start")
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    result: Int64 = np.minimum(values.cast(pa.int64()).fill_null(NO_TIME).to_numpy(), NO_TIME)
    return result


def nulls_of(table: pa.Table, column: str) -> Mask:
    """Return a mask of the rows that are NULL in a time column."""
    result: Mask = single_chunk(table.column(column)).is_null().to_numpy(zero_copy_only=False)
    return result


def span_of(table: pa.Table, column: str) -> tuple[int, int]:
    """Return the smallest and the largest time in a table, NULL left out.

    If all times are NULL, the smallest is above the largest.
    """
    times = times_of(table, column)
    if table.column(column).null_count:
        times = times[~nulls_of(table, column)]
    return int(np.min(times, initial=NO_TIME)), int(np.max(times, initial=-NO_TIME))

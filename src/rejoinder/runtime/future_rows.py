"""Future rows: rows whose event time is further ahead of the epoch's clock than a source allows.

A single row with a wrong year would advance the watermark so far that all following rows are late. With the option
`max_ahead` such a row is rejected: it goes to the rejected relation and advances no watermark.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.columns import PARTITION, take
from rejoinder.runtime.row_json import as_json
from rejoinder.store.runs.time_values import NO_TIME, times_of

DAY = 86_400_000_000


def split_future_rows(rows: pa.Table, source: Source, now: int, path: str | None) -> tuple[pa.Table, pa.Table | None]:
    """Return the rows that are not too far ahead of `now` (microseconds), and the others as rejected records."""
    if source.max_ahead is None:
        return rows, None
    is_future = np.zeros(rows.num_rows, bool)
    reasons = np.full(rows.num_rows, "", object)
    for column in source.watermarks:
        kind = rows.schema.field(column).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
            continue
        limit = now + source.max_ahead
        times = times_of(rows, column)
        is_above = (times > (limit // DAY if pa.types.is_date32(kind) else limit)) & (times != NO_TIME)
        reasons[is_above & ~is_future] = f"`{column}` is further ahead of the clock than max_ahead allows"
        is_future |= is_above
    if not is_future.any():
        return rows, None
    future = np.flatnonzero(is_future)
    rejected = rejected_rows(take(rows, future), reasons[future].tolist(), source, path)
    return take(rows, np.flatnonzero(~is_future)), rejected


def rejected_rows(rows: pa.Table, reasons: list[str], source: Source, path: str | None) -> pa.Table:
    """Return records of the rejected relation: the origin as far as it is known, the row, and the reason."""
    schema = source_side(source).rejected_schema
    columns = {
        schema.names[0]: pa.array([path] * rows.num_rows, pa.string()),
        "text": as_json(rows),
        "reason": pa.array(reasons, pa.string()),
    }
    if "partition" in schema.names and PARTITION in rows.column_names:
        columns["partition"] = rows.column(PARTITION).cast(pa.int32())
    arrays = [columns.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)

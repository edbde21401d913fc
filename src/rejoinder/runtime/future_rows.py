"""Rows from the future: those whose event time is further ahead of the epoch's clock than a source allows.

One row with a wrong year would push the watermark past everything that follows, and make all of it late. With option
`max_ahead` such a row is refused: it goes to the rejected relation and moves no watermark.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.ir.catalog import REJECTED_RECORDS, Source
from rejoinder.kernels.arrow.columns import PARTITION, take
from rejoinder.runtime.row_json import as_json
from rejoinder.store.runs.time_values import NO_TIME, times_of

DAY = 86_400_000_000


def split_ahead(rows: pa.Table, source: Source, now: int, path: str | None) -> tuple[pa.Table, pa.Table | None]:
    """The rows that are not too far ahead of `now` (microseconds); and the others, as rejected records."""
    if source.max_ahead is None:
        return rows, None
    ahead = np.zeros(rows.num_rows, bool)
    reasons = np.full(rows.num_rows, "", object)
    for column in source.watermarks:
        kind = rows.schema.field(column).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
            continue
        limit = now + source.max_ahead
        times = times_of(rows, column)
        found = (times > (limit // DAY if pa.types.is_date32(kind) else limit)) & (times != NO_TIME) & ~ahead
        reasons[found] = f"`{column}` is further ahead of the clock than max_ahead allows"
        ahead |= found
    if not ahead.any():
        return rows, None
    refused = np.flatnonzero(ahead)
    return take(rows, np.flatnonzero(~ahead)), rejected_rows(
        take(rows, refused), reasons[refused].tolist(), source, path
    )


def rejected_rows(rows: pa.Table, reasons: list[str], source: Source, path: str | None) -> pa.Table:
    """Records of the rejected relation: where they came from as far as that is known, the row, and why."""
    schema = source.rejected_schema
    known = {
        schema.names[0]: pa.array([path] * rows.num_rows, pa.string()),
        "text": as_json(rows),
        "reason": pa.array(reasons, pa.string()),
    }
    if schema == REJECTED_RECORDS and PARTITION in rows.column_names:
        known["partition"] = rows.column(PARTITION).cast(pa.int32())
    columns = [known.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)

"""Apply column changes to a delta: the rows of a run that was written before an ALTER.

Cost: no pass over the rows, except for `cast` and `hash`; an added column is one value, gathered.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rejoinder.ir.evolution.column_changes import ColumnChange
from rejoinder.kernels.arrow.columns import HASH, hashes, payload_names, replaced, single_chunk, take, without
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.sorting import order_by_hash, slice_of


def changed_columns(table: pa.Table, changes: Sequence[ColumnChange]) -> pa.Table:
    """Return the rows after changes. A lean run lacks some columns: changes of these have no effect."""
    for change in changes:
        table = _changed(table, change)
    return table


def _changed(table: pa.Table, change: ColumnChange) -> pa.Table:
    match change.kind:
        case "add":
            value = single_chunk(change.value)
            return table.append_column(change.column, value.take(pa.array(np.zeros(table.num_rows, np.int64))))
        case "drop":
            return without(table, [change.column])
        case "rename":
            return table.rename_columns([change.to if n == change.column else n for n in table.column_names])
        case "cast":
            at = table.schema.get_field_index(change.column)
            return table if at < 0 else table.set_column(at, change.column, table.column(at).cast(change.value.type))
        case "clip":
            begin, end = slice_of(hashes(table), *change.hashes)
            return table.slice(begin, end - begin)
        case "hash":
            keys = hash_rows([table.column(name) for name in payload_names(table)], table.num_rows)
            return take(replaced(table, HASH, keys), order_by_hash(keys))

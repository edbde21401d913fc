"""The reserved columns of a delta, and conversions between Arrow columns and NumPy arrays.

A *delta* is an Arrow table of payload columns with up to three reserved ones:

- `__hash` (uint64): hash of the key that the delta is partitioned or sorted by;
- `__diff` (int64): signed multiplicity of the row. Absent means that every row has multiplicity one;
- `__epoch` (int64): the epoch of the change, kept in view changelogs only.

Along a path a delta may have one more column, `__error` (string): the error of an expression on the row, or NULL
(`kernels.duckdb.row_errors`). It is part of the row, and absent if no row has an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HASH = "__hash"
DIFF = "__diff"
EPOCH = "__epoch"
SEQUENCE = "__sequence"
PARTITION = "__partition"
ERROR = "__error"
RESERVED = frozenset({HASH, DIFF, EPOCH, SEQUENCE, PARTITION})

UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]


def single_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the column as one contiguous array; without a copy if it has a single chunk."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """View a null-free fixed-width column as a NumPy array, without a copy if it is contiguous."""
    values: npt.NDArray[Any] = single_chunk(table.column(name)).to_numpy(zero_copy_only=False)
    return values


def hashes(table: pa.Table) -> UInt64:
    """View the `__hash` column."""
    return numbers(table, HASH).view(np.uint64)


def diffs(table: pa.Table) -> Int64:
    """View the `__diff` column; ones if the table has none."""
    if DIFF not in table.column_names:
        return np.ones(table.num_rows, np.int64)
    return numbers(table, DIFF).view(np.int64)


def has_diffs(table: pa.Table) -> bool:
    """Whether any multiplicity may differ from one."""
    return DIFF in table.column_names


def without(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return the table without the named columns; missing ones are ignored."""
    dropped = set(names)
    kept = [name for name in table.column_names if name not in dropped]
    return table if len(kept) == table.num_columns else table.select(kept)


def replaced(table: pa.Table, name: str, values: npt.NDArray[np.generic] | pa.Array) -> pa.Table:
    """Return the table with a column set: replaced if the name exists, else appended."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    index = table.schema.get_field_index(name)
    return table.append_column(name, array) if index < 0 else table.set_column(index, name, array)


def payload_names(table: pa.Table) -> list[str]:
    """Return the columns that are not reserved, in order."""
    return [name for name in table.column_names if name not in RESERVED]


def with_payload(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the table with these columns and the reserved ones that it has. No column is copied."""
    kept = [name for name in table.column_names if name in names or name in RESERVED]
    return table if len(kept) == table.num_columns else table.select(kept)


def take(table: pa.Table, rows: Int64) -> pa.Table:
    """Gather rows by position into contiguous columns. Cost: one pass per column over `rows`."""
    indices = pa.array(rows)
    arrays = [single_chunk(column).take(indices) for column in table.columns]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def contiguous(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables with the same payload columns; `__diff` and `__error` are added where only some have them."""
    if len(tables) == 1:
        return tables[0].combine_chunks()
    if any(has_diffs(t) for t in tables):
        tables = [t if has_diffs(t) else replaced(t, DIFF, np.ones(t.num_rows, np.int64)) for t in tables]
    if any(ERROR in t.column_names for t in tables):
        none = [pa.nulls(t.num_rows, pa.string()) for t in tables]
        tables = [t if ERROR in t.column_names else replaced(t, ERROR, n) for t, n in zip(tables, none, strict=True)]
    names = tables[0].column_names
    return pa.concat_tables([t if t.column_names == names else t.select(names) for t in tables]).combine_chunks()


def drop_unit_diffs(table: pa.Table) -> pa.Table:
    """Return the table without `__diff` if every diff is one, to save writing and sending it."""
    if has_diffs(table) and bool(np.all(diffs(table) == 1)):
        return without(table, [DIFF])
    return table

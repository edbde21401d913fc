"""Computed columns of a source: added to rows as they are read, before watermarks. One query of DuckDB per chunk."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.errors import MalformedInput
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.columns import ERROR, without
from rejoinder.kernels.duckdb.row_errors import error_of, filter_project_marked, split_marked
from rejoinder.runtime.future_rows import rejected_rows


def with_computed(rows: pa.Table, source: Source, path: str | None) -> tuple[pa.Table, pa.Table | None]:
    """Return the rows with the computed columns of their source, and rows on which one fails as rejected records.

    Such a row is a malformed record: raises `MalformedInput` unless the source diverts malformed records.
    """
    if not source.outputs:
        return rows, None
    names = source.schema.names
    extra = [name for name in rows.column_names if name not in names]
    sound, failed = split_marked(filter_project_marked(rows, None, source.outputs, keep=rows.column_names))
    sound = sound.select([*names, *extra])
    if failed is None:
        return sound, None
    errors = [error_of(text) for text in failed.column(ERROR).to_pylist()]
    if not source.diverts:
        raise MalformedInput(
            f"a computed column of `{source.name}` fails on a record" + (f" of `{path}`" if path else ""),
            detail=f"{errors[0].fact}: {errors[0].detail}" if errors[0].detail else errors[0].fact,
            values=errors[0].values,
            hint="guard the expression with CASE or TRY_CAST, or set OPTIONS (malformed 'divert') to send such records "
            f"to `{source.rejected}`",
        )
    records = without(failed, [ERROR, *(name for name, _ in source.outputs)])
    return sound, rejected_rows(records, [error.fact for error in errors], source, path)

"""Convert the columns of a file to the declared columns and types, or report the difference."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.errors import MalformedInput, SchemaChanged, near_misses
from rejoinder.formats.related_types import is_related
from rejoinder.formats.unreadable import Reason, Unreadable


def conform(table: pa.Table, schema: pa.Schema, place: str, source: str) -> pa.Table:
    """Return the declared columns, selected by name (case as declared, else without case) and cast without loss.

    Raises `SchemaChanged` or `MalformedInput`. Text must be UTF-8: other bytes could be stored but never read again.
    """
    arrays = []
    by_lower = {name.lower(): name for name in table.column_names}
    for field in schema:
        name = field.name if field.name in table.column_names else by_lower.get(field.name.lower())
        if name is None:
            raise SchemaChanged(
                f"column `{field.name}` of `{source}` is missing in {place}",
                detail=f"columns found: {', '.join(table.column_names)}",
                hint=near_misses(field.name, table.column_names) or "declare the columns that the files have",
            )
        if table.column_names.count(name) > 1:
            raise SchemaChanged(
                f"column `{name}` of `{source}` appears twice in {place}",
                detail=f"columns found: {', '.join(table.column_names)}",
                hint="remove one of them",
            )
        column = table.column(name)
        _validate(column, field.name, place, source)  # a cast does not validate its input
        if column.type != field.type:
            column = _cast(column, field, place, source)
            _validate(column, field.name, place, source)
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=schema.remove_metadata())


def _validate(column: pa.ChunkedArray, name: str, place: str, source: str) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as failure:
        raise MalformedInput(
            f"column `{name}` of `{source}` contains an invalid value of its type in {place}",
            detail=Reason.of(failure).plain,
            values=str(failure),
            hint="replace the file and run again: the epoch was not committed",
        ) from None


def _cast(column: pa.ChunkedArray, field: pa.Field, place: str, source: str) -> pa.ChunkedArray:
    try:
        if not is_related(column.type, field.type):
            raise Unreadable("the types are not convertible")
        if pa.types.is_timestamp(field.type) and pa.types.is_timestamp(column.type):
            return _cast_timestamp(column, field.type)
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
        raise SchemaChanged(
            f"column `{field.name}` of `{source}` does not fit its declared type in {place}",
            detail=f"declared {field.type}, found {column.type}: {Reason.of(failure).plain}",
            values=None if isinstance(failure, Unreadable) else str(failure),
            hint="declare the type that the files have, and cast in the query",
        ) from None


def _cast_timestamp(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast between timestamps with and without zone, which is UTC: Spark's rule in a UTC session."""
    micros = column.cast(pa.timestamp("us", tz=column.type.tz), safe=column.type.unit != "ns")
    return pa.chunked_array([chunk.view(kind) for chunk in micros.chunks], type=kind)

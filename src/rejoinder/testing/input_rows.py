"""Check rows and times of a test against the columns of their source, and convert them to Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import numpy as np
import pyarrow as pa

from rejoinder.engine.time.explicit_watermarks import plain_value
from rejoinder.errors import InputError, near_misses
from rejoinder.formats.text.plain_rows import Row
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.columns import DIFF, replaced
from rejoinder.kernels.arrow.scatter import encode
from rejoinder.sql.types.spark_types import spark_name
from rejoinder.state.reading.changelog_reader import milliseconds


def refuse_other_than_rows(source: Source, rows: Iterable[object]) -> None:
    """Raise `InputError` if a value is not a row."""
    other = next((row for row in rows if not isinstance(row, Mapping)), None)
    if other is not None:
        raise InputError(
            f"a row of `{source.name}` is a dict, and this is of type {type(other).__name__}",
            values=repr(other)[:200],
            hint="rows are dicts by column; unpack a list of them with *",
        )


def encoded(source: Source, entries: Iterable[tuple[Row, int]], zone: str) -> bytes:
    """Encode rows with their signs, as tasks read them. Times without a zone are in the zone of the flow.

    Raises `InputError` if a row does not fit the source.
    """
    rows, signs = zip(*entries, strict=True)
    source = source.recorded
    try:
        table = pa.Table.from_pylist([_checked(source, row, zone) for row in rows], schema=source.schema)
    except (ValueError, TypeError, ArithmeticError) as failure:
        raise InputError(
            f"a row does not fit the columns of `{source.name}`",
            values=str(failure),
            hint=f"columns: {', '.join(f'{f.name} {spark_name(f.type)}' for f in source.schema)}",
        ) from None
    is_whole = source.op is not None or source.diff is not None  # the signs replace the op or diff column
    return encode(replaced(table, DIFF, np.array(signs, np.int64)), is_whole=is_whole)


def _checked(source: Source, row: Row, zone: str) -> Row:
    unknown = next((str(name) for name in row if name not in source.schema.names), None)
    if unknown is not None:
        raise InputError(
            f"`{source.name}` has no column `{unknown}`",
            detail=f"columns: {', '.join(source.schema.names)}",
            hint=near_misses(unknown, source.schema.names)
            or "rows have the declared columns, NULL where one is left out",
        )
    return {name: plain_value(row.get(name), source.schema.field(name).type, zone) for name in source.schema.names}


def time_of(at: object) -> int | None:
    """Return the time of a step in milliseconds. Raises `InputError` if it is neither a datetime nor an integer."""
    if isinstance(at, datetime):
        return milliseconds(at)
    if at is None or isinstance(at, int):
        return at
    raise InputError(
        f"a step cannot be at {at!r}",
        detail=f"it is of type {type(at).__name__}",
        hint="give a datetime (in UTC, unless it has a zone), or milliseconds since 1970",
    )

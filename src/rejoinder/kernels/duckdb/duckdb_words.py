"""Names, literals and bindings as DuckDB writes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa

from rejoinder.kernels.duckdb.duckdb_types import duckdb_type

FAILURE = "CAST(CAST('' AS INTEGER) AS \"NULL\")"
"""Fails like `error`, and has any type. TRY does not accept `error`, which is volatile."""

_EPOCH = datetime(1970, 1, 1)


def quoted(name: str) -> str:
    """Quote a column name."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Write a string."""
    return "'" + text.replace("'", "''") + "'"


def literal_text(value: Any, kind: pa.DataType) -> str:
    """Write a value of a type.

    >>> literal_text(3, pa.int64()), literal_text(None, pa.null()), literal_text("it's", pa.string())
    ('CAST(3 AS BIGINT)', 'NULL', "CAST('it''s' AS VARCHAR)")
    """
    if pa.types.is_null(kind):
        return "NULL"
    if value is None:
        return f"CAST(NULL AS {duckdb_type(kind)})"
    if pa.types.is_timestamp(kind):
        since = value - _EPOCH
        return f"make_timestamp({(since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds})"
    if pa.types.is_boolean(kind):
        text = "TRUE" if value else "FALSE"
    elif pa.types.is_integer(kind):
        text = str(value)
    elif pa.types.is_decimal(kind):
        text = f"'{value:f}'"
    else:
        text = text_literal(str(value))
    return f"CAST({text} AS {duckdb_type(kind)})"


def once(name: str, value: str, body: str) -> str:
    """A body in which a name stands for a value that is evaluated once.

    DuckDB has no LET; a lambda over a list of one value has the same effect. Nested names must differ unless they stand
    for the same value.
    """
    return f"list_transform([{value}], lambda {name}: {body})[1]"

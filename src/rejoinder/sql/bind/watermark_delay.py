"""The delay of a watermark, as a source or a query declares it."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.errors import InvalidSql
from rejoinder.sql.bind.emit_clause import Clause, interval_microseconds
from rejoinder.sql.types.interval_literals import MICROS
from rejoinder.sql.types.spark_types import spark_name


def delay_of(relation: str, column: str, schema: pa.Schema, text: str, words: str = "DELAY OF") -> int | None:
    """Return how far a watermark stays behind the largest time seen, in the unit of the column.

    None if `text` is empty: then only explicit watermarks advance it.
    """
    kind = next((f.type for f in schema if f.name.lower() == column.lower()), None)
    is_timestamp = kind is not None and pa.types.is_timestamp(kind)
    if kind is not None and not (is_timestamp or pa.types.is_date32(kind) or pa.types.is_signed_integer(kind)):
        clause = words.replace("DELAY OF", "WATERMARK")
        raise InvalidSql(
            f"{clause} on `{column}` of `{relation}`, which is of type {spark_name(kind)}",
            detail=f"columns: {', '.join(schema.names)}",
            hint="an event-time column is a TIMESTAMP, a DATE or an integer",
        )
    if not text:
        return None
    if text == "0":
        return 0
    if text.isdigit() and not is_timestamp:
        return int(text)
    if kind is not None and pa.types.is_signed_integer(kind):
        raise InvalidSql(
            f"the delay `{text}` of `{relation}` does not fit column `{column}`",
            detail=f"the column is of type {spark_name(kind)}",
            hint="an integer column takes a number, 0 or more, such as 100",
        )
    length = interval_microseconds(Clause("every", text), words, least=0)
    return length if is_timestamp else -(-length // MICROS["DAY"])

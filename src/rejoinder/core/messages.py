"""What operators of the core API hand on, in order: rows, late rows, watermarks, idle messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.errors import SchemaChanged
from rejoinder.watermarks.coalescer import Idle, Watermark


@dataclass(frozen=True)
class Rows:
    """Rows that come out together. `padded`: they found no partner, and the other side's columns are NULL."""

    table: pa.Table
    padded: bool = False


@dataclass(frozen=True)
class LateRows:
    """Rows of an input that were below a watermark already received, or had no time: handed back, not worked on."""

    ordinal: int
    table: pa.Table


Message = Rows | LateRows | Watermark | Idle


def as_table(batch: pa.Table | pa.RecordBatch) -> pa.Table:
    """Take a record batch or a table as a table."""
    return batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])


def with_columns(table: pa.Table, schema: pa.Schema, ordinal: int) -> pa.Table:
    """The columns of a schema, in its order; raises `SchemaChanged` where one is missing or of another type."""
    for field in schema:
        at = table.schema.get_field_index(field.name)
        if at < 0 or table.schema.field(at).type != field.type:
            found = "has no such column" if at < 0 else f"has {table.schema.field(at).type}"
            raise SchemaChanged(
                f"input {ordinal} needs a column `{field.name}` of type {field.type}",
                detail=f"a batch {found}; its columns are {', '.join(table.column_names) or 'none'}",
                hint="bring rows to the columns and types that the operator was made for",
            )
    return table.select(schema.names)


def rows_of(messages: Iterable[Message], *, padded: bool | None = None) -> list[pa.Table]:
    """The tables of rows among messages; with `padded`, only such."""
    return [
        message.table
        for message in messages
        if isinstance(message, Rows) and (padded is None or message.padded == padded)
    ]

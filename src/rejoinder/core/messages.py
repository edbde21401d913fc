"""The messages that operators of the core API emit: rows, late rows, watermarks, idle messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.errors import SchemaChanged
from rejoinder.watermarks.coalescer import Idle, Watermark


@dataclass(frozen=True)
class Rows:
    """A batch of rows."""

    table: pa.Table
    padded: bool = False
    """Whether these are rows without a match: the columns of the other side are NULL."""


@dataclass(frozen=True)
class LateRows:
    """Rows of an input that are late, or have no time. They are returned, not processed."""

    ordinal: int
    table: pa.Table


Message = Rows | LateRows | Watermark | Idle


def as_table(batch: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return a record batch or a table as a table."""
    return batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])


def with_columns(table: pa.Table, schema: pa.Schema, ordinal: int) -> pa.Table:
    """Select the columns of a schema. Raises `SchemaChanged` if one is missing or has another type."""
    for field in schema:
        index = table.schema.get_field_index(field.name)
        if index < 0 or table.schema.field(index).type != field.type:
            actual = "has no such column" if index < 0 else f"has {table.schema.field(index).type}"
            raise SchemaChanged(
                f"input {ordinal} needs a column `{field.name}` of type {field.type}",
                detail=f"a batch {actual}; its columns are {', '.join(table.column_names) or 'none'}",
                hint="convert rows to the columns and types of the operator",
            )
    return table.select(schema.names)


def rows_of(messages: Iterable[Message]) -> list[pa.Table]:
    """Return the tables of the `Rows` among messages."""
    return [message.table for message in messages if isinstance(message, Rows)]

"""What operators of the core API hand on, in order: rows, late rows, watermarks, idle messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.operators.coalescer import Idle, Watermark


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


def rows_of(messages: Iterable[Message], *, padded: bool | None = None) -> list[pa.Table]:
    """The tables of rows among messages; with `padded`, only such."""
    return [
        message.table
        for message in messages
        if isinstance(message, Rows) and (padded is None or message.padded == padded)
    ]

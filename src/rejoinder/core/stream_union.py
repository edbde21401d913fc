"""Union: combine several inputs into one stream, with the minimum of their watermarks."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rejoinder.core.messages import Message
from rejoinder.core.operator import Operator
from rejoinder.errors import SchemaChanged


class Union(Operator):
    """Combine inputs of one schema. A key must mean the same column on all inputs; it is emitted once all sent it.

    >>> merged = Union(2, pa.schema([("t", pa.int64())]))
    >>> merged.watermark(0, key=0, time=10)
    []
    >>> merged.watermark(1, key=0, time=8)
    [Watermark(key=0, time=8)]
    """

    def __init__(self, inputs: int | Sequence[int], schema: pa.Schema) -> None:
        super().__init__(inputs)
        self.schema = schema

    def on_rows(self, ordinal: int, table: pa.Table) -> list[Message]:
        """Pass rows on. Raises `SchemaChanged` if they do not have the columns of the union."""
        if not table.schema.equals(self.schema):
            raise SchemaChanged(
                f"input {ordinal} of the union has other columns",
                detail=f"it has {_shown(table.schema)}, and the union {_shown(self.schema)}",
                hint="convert its rows to the columns and types of the union",
            )
        return super().on_rows(ordinal, table)


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema) or "none"

"""Union: the rows of several inputs as one stream, with the watermarks that hold for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rejoinder.core.messages import Message
from rejoinder.core.operator import Operator
from rejoinder.errors import SchemaChanged


class Union(Operator):
    """Merge inputs of one schema. A key has to mean the same column on all of them; one that an input lacks stays back.

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
        """Pass rows on, if they have the columns of the union."""
        if not table.schema.equals(self.schema):
            raise SchemaChanged(
                f"input {ordinal} of the union has other columns",
                detail=f"it has {_shown(table.schema)}, and the union {_shown(self.schema)}",
                hint="bring its rows to the columns and types of the union first",
            )
        return super().on_rows(ordinal, table)


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema) or "none"

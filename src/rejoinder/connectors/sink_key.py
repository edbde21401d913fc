"""The key of a sink: the columns that identify a row of its view."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.errors import UnknownName, near_misses
from rejoinder.ir.catalog import Sink
from rejoinder.ir.type_names import listed_columns


def key_of(sink: Sink, schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns of option `key`, in the case of the view. Raises `UnknownName`.

    >>> key_of(Sink("s", "v", "delta", {"key": "ID, day"}), pa.schema([("id", pa.int64()), ("day", pa.date32())]))
    ('id', 'day')
    """
    declared = {name.lower(): name for name in schema.names}
    names = [name.strip() for name in sink.options.get("key", "").split(",") if name.strip()]
    for name in names:
        if name.lower() not in declared:
            raise UnknownName(
                f"`{sink.view}` has no column `{name}`, which is in the key of sink `{sink.name}`",
                detail=listed_columns(schema),
                hint=near_misses(name, schema.names) or "name columns of the view",
            )
    return tuple(declared[name.lower()] for name in names)

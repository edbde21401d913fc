"""JSON keys that differ from a column's name in case only: they fill the column where the exact key does not.

Spark compares names of columns without case, but keys of JSON with it, and gives NULL. Where Spark has a value, it is
the one of the exact key, as here. (A record in which the exact key is null and another one is not has the other value.)

Cost: for columns with a NULL, two searches in the text. Only where another spelling is found is the text parsed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Parse = Callable[[pa.Schema], pa.Table]


def with_other_spellings(table: pa.Table, data: bytes | memoryview, parse: Parse) -> pa.Table:
    """Fill columns from keys in other cases. `parse` reads the same text with another schema.

    Raises `pa.ArrowInvalid` if a record has two such keys of one column: nothing says which is meant.
    """
    with_nulls = [name for name in table.column_names if table.column(name).null_count]
    for name, spellings in _spellings(data, with_nulls).items():
        field = table.field(name)
        exact, values = table.column(name), pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        for spelling in spellings:
            found = parse(pa.schema([field.with_name(spelling)])).column(spelling)
            both = np.asarray(pc.and_(pc.and_(values.is_valid(), found.is_valid()), exact.is_null()), bool)
            if both.any():
                listed = " and ".join(f"`{each}`" for each in spellings)
                raise pa.ArrowInvalid(f"the keys {listed} differ in case only, and none is `{name}`")
            values = pc.if_else(found.is_valid(), found, values)
        filled = pc.if_else(exact.is_valid(), exact, values)
        table = table.set_column(table.column_names.index(name), field, filled)
    return table


def _spellings(data: bytes | memoryview, names: Sequence[str]) -> dict[str, list[str]]:
    """The other spellings of names among the keys of a text, by name."""
    if not names:
        return {}
    text = bytes(data)
    lowered: bytes | None = None
    result = {}
    for name in names:
        key = b'"' + name.encode() + b'"'
        lowered = text.lower() if lowered is None else lowered
        if lowered.count(key.lower()) == text.count(key):
            continue
        found = re.findall(rb'(?i)"(' + re.escape(name.encode()) + rb')"\s*:', text)
        spellings = sorted({each.decode() for each in found} - {name})
        if spellings:
            result[name] = spellings
    return result

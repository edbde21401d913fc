"""Rows as text: one JSON object each, for relations that hold rows of any source."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.kernels.columns import RESERVED, without
from rejoinder.kernels.evaluate import project
from rejoinder.kernels.expression import Expression, quoted


def as_json(rows: pa.Table) -> pa.ChunkedArray:
    """The payload of each row as a JSON object.

    >>> as_json(pa.table({"id": [1], "name": ["a"]})).to_pylist()
    ['{"id":1,"name":"a"}']
    """
    plain = without(rows, RESERVED)
    fields = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}': {quoted(name)}" for name in plain.column_names)
    text = Expression(f"CAST(to_json({{{fields}}}) AS VARCHAR)", pa.string(), tuple(plain.column_names))
    return project(plain, [("row", text)]).column("row")

"""Rows as JSON objects, for relations that contain rows of any source."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.kernels.arrow.columns import RESERVED, without
from rejoinder.kernels.duckdb.json_text import json_rows


def as_json(rows: pa.Table) -> pa.ChunkedArray:
    """Return the payload of each row as a JSON object.

    >>> as_json(pa.table({"id": [1], "name": ["a"]})).to_pylist()
    ['{"id":1,"name":"a"}']
    """
    return json_rows(without(rows, RESERVED))

"""The rejected relation: records that could not be read, with file, line and reason."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rejoinder.ir.catalog import REJECTED_SCHEMA


def rejected_lines(path: str, lines: Sequence[tuple[int, str, str]]) -> pa.Table:
    """Return rows of the rejected relation from (line number, text, reason)."""
    columns = [[path] * len(lines), *map(list, zip(*lines, strict=True))] if lines else [[], [], [], []]
    return pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, REJECTED_SCHEMA, strict=True)],
        schema=REJECTED_SCHEMA,
    )

"""Parse timestamps from text, with or without an offset; without one they are UTC."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_OFFSET = r":[0-9.]+ ?(Z|[+-][0-9:]+)$"


def timestamps(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parse ISO 8601 texts as timestamps of a type. Raises `pa.ArrowInvalid` for any other text.

    >>> timestamps(pa.array(["2026-01-01 10:00:00", "2026-01-01T10:00:00+02:00"]), pa.timestamp("us")).to_pylist()
    [datetime.datetime(2026, 1, 1, 10, 0), datetime.datetime(2026, 1, 1, 8, 0)]
    """
    try:
        return texts.cast(pa.timestamp("us")).view(kind)
    except pa.ArrowInvalid:
        has_offset = pc.match_substring_regex(texts, _OFFSET)
        if not pc.any(has_offset).as_py():
            raise
    with_offset = pc.if_else(has_offset, texts, None).cast(pa.timestamp("us", tz="UTC"))
    without_offset = pc.if_else(has_offset, None, texts).cast(pa.timestamp("us"))
    return pc.coalesce(with_offset.view(kind), without_offset.view(kind))

"""Points in time from text, with an offset or without: then they are UTC, as everywhere."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_OFFSET = r":[0-9.]+ ?(Z|[+-][0-9:]+)$"


def timestamps(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read texts in ISO 8601 as timestamps of a type. Raises `pa.ArrowInvalid` if one is none.

    >>> timestamps(pa.array(["2026-01-01 10:00:00", "2026-01-01T10:00:00+02:00"]), pa.timestamp("us")).to_pylist()
    [datetime.datetime(2026, 1, 1, 10, 0), datetime.datetime(2026, 1, 1, 8, 0)]
    """
    try:
        return texts.cast(pa.timestamp("us")).view(kind)
    except pa.ArrowInvalid:
        has_offset = pc.match_substring_regex(texts, _OFFSET)
        if not pc.any(has_offset).as_py():
            raise
    told = pc.if_else(has_offset, texts, None).cast(pa.timestamp("us", tz="UTC"))
    bare = pc.if_else(has_offset, None, texts).cast(pa.timestamp("us"))
    return pc.coalesce(told.view(kind), bare.view(kind))

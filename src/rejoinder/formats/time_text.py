"""Parse timestamps from text, with or without an offset; without one they are local times of the zone of their type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import single_chunk
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.duckdb.functions.time.zone_functions import instant_text
from rejoinder.kernels.duckdb.text_expression import text_expression
from rejoinder.kernels.zones.zone_names import zone_name
from rejoinder.kernels.zones.zone_offsets import UTC

_OFFSET = r":[0-9.]+ ?(Z|[+-][0-9:]+)$"


def timestamps(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parse ISO 8601 texts as timestamps of a type. Raises `pa.ArrowInvalid` for any other text.

    >>> timestamps(pa.array(["2026-01-01 10:00:00", "2026-01-01T10:00:00+02:00"]), pa.timestamp("us")).to_pylist()
    [datetime.datetime(2026, 1, 1, 10, 0), datetime.datetime(2026, 1, 1, 8, 0)]
    """
    try:
        return _instants(texts.cast(pa.timestamp("us")), kind)
    except pa.ArrowInvalid:
        has_offset = pc.match_substring_regex(texts, _OFFSET)
        if not pc.any(has_offset).as_py():
            raise
    with_offset = pc.if_else(has_offset, texts, None).cast(pa.timestamp("us", tz="UTC"))
    without_offset = pc.if_else(has_offset, None, texts).cast(pa.timestamp("us"))
    return pc.coalesce(with_offset.view(kind), _instants(without_offset, kind))


def _instants(local: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return local times of the zone of a type as values of the type."""
    if kind.tz not in (None, UTC):
        instant = instant_text('"value"', text_literal(zone_name(kind.tz) or kind.tz))
        expression = text_expression(instant, pa.timestamp("us"), ("value",))
        local = single_chunk(project(pa.table({"value": local}), [("value", expression)]).column("value"))
    return local.view(kind)

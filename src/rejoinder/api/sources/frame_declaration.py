"""Sources declared in Python: the columns of a DataFrame, and its event time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.connectors.kafka.connector import KAFKA
from rejoinder.errors import InvalidSql, PlanningError, Unsupported
from rejoinder.ir.catalog import Kind, Source
from rejoinder.sql.definitions.source_definition import make_source
from rejoinder.sql.types.spark_types import parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Columns = Mapping[str, str]


def frame_fields(source: str, frame: DataFrame) -> list[pa.Field]:
    """Return the columns of a streaming DataFrame as Arrow fields. Raises `InvalidSql` if it is not a stream."""
    from rejoinder.exchange.streaming.source_frames import frame_columns

    if not frame.isStreaming:
        raise InvalidSql(f"the DataFrame of `{source}` is not a stream", hint="make it with spark.readStream")
    return [_field(source, column, text) for column, text in frame_columns(frame)]


def watermark(source: str, event_time: str | None, delay: str | int | None) -> dict[str, str]:
    """Return the WATERMARK clause of a source: the column, and its delay as text; empty if it is explicit.

    >>> watermark("orders", "ts", "5 seconds"), watermark("orders", "ts", None)
    ({'ts': 'INTERVAL 5 seconds'}, {'ts': ''})
    """
    if event_time is None:
        if delay is not None:
            raise InvalidSql(
                f"`{source}` has a delay and no event-time column",
                detail=f"delay={delay!r}",
                hint='name the column: event_time="ts", delay="5 seconds"',
            )
        return {}
    text = "" if delay is None else str(delay).strip()
    is_whole = not text or text.isdigit() or text.upper().startswith("INTERVAL")
    return {event_time: text if is_whole else f"INTERVAL {text}"}


def topic_source(
    source: str,
    kind: Kind,
    columns: Columns,
    primary_key: tuple[str, ...],
    options: Mapping[str, str],
    watermarks: Mapping[str, str],
) -> Source:
    """Return a source on a topic, with its columns given as names and SQL types."""
    fields = [_field(source, column, text) for column, text in columns.items()]
    lowered = {option.lower(): value for option, value in options.items()}
    return make_source(source, kind, fields, primary_key, KAFKA.name, lowered, watermarks)


def _field(source: str, column: str, text: str) -> pa.Field:
    try:
        return pa.field(column, parse_type(text))
    except PlanningError as refused:
        raise Unsupported(
            f"column `{column}` of `{source}` has the type `{text}`, which is not supported",
            hint="select it as another type, or leave it out",
        ) from refused

"""The registry of connectors. A new one is a folder beside this file, and a line here."""

from __future__ import annotations

from rejoinder.connectors.connector import Connector, SinkSide, SourceSide
from rejoinder.connectors.console.connector import CONSOLE
from rejoinder.connectors.dataframe.connector import DATAFRAME
from rejoinder.connectors.delta.connector import DELTA
from rejoinder.connectors.files.connector import ARROW, CSV, JSON, PARQUET, TEXT
from rejoinder.connectors.function.connector import FUNCTION
from rejoinder.connectors.jdbc.connector import JDBC
from rejoinder.connectors.kafka.connector import KAFKA
from rejoinder.connectors.memory.connector import MEMORY
from rejoinder.ir.catalog import Sink, Source

CONNECTORS: tuple[Connector, ...] = (
    ARROW,
    CONSOLE,
    CSV,
    DATAFRAME,
    DELTA,
    FUNCTION,
    JDBC,
    JSON,
    KAFKA,
    MEMORY,
    PARQUET,
    TEXT,
)
SOURCES: dict[str, SourceSide] = {
    connector.name: connector.source for connector in CONNECTORS if connector.source is not None
}
SINKS: dict[str, SinkSide] = {connector.name: connector.sink for connector in CONNECTORS if connector.sink}
SOURCE_FORMATS = sorted(connector.name for connector in CONNECTORS if connector.source and connector.is_listed)
"""The formats that CREATE STREAM, TABLE and CHANGELOG can name."""
SINK_FORMATS = sorted(connector.name for connector in CONNECTORS if connector.sink and connector.is_listed)
"""The formats that CREATE SINK can name."""
_INTERNAL = SourceSide()


def source_side(source: Source) -> SourceSide:
    """Return how a source is read."""
    return _INTERNAL if source.is_internal else SOURCES[source.format]


def sink_side(sink: Sink) -> SinkSide:
    """Return how a sink is written."""
    return SINKS[sink.format]

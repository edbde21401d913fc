"""The input of a source on Spark, as its connector reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.connectors.connector import Inputs
from rejoinder.connectors.registry import source_side
from rejoinder.ir.catalog import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SourceStream:
    """A source with what this process provides for it. The runner of the streaming query calls it."""

    source: Source
    inputs: Inputs

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.source.name

    @property
    def passes_rows(self) -> bool:
        """Whether rows pass through the JVM."""
        return source_side(self.source).passes_rows

    def partitions(self, session: SparkSession) -> list[int]:
        """Return the partitions that exist now; empty if the source has none of its own."""
        return source_side(self.source).partitions(session, self.source)

    def splits(self, session: SparkSession) -> DataFrame:
        """Return the input as a stream of splits."""
        return source_side(self.source).splits(session, self.source, self.inputs)

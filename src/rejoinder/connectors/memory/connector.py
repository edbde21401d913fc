"""Sources without USING: rows are inserted and deleted by calls. On Spark they pass through files of the flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoinder.connectors.connector import Connector, Inputs, SourceSide
from rejoinder.connectors.files.options import FILE_OPTIONS, check_files
from rejoinder.formats.arrow_files import read_inserted
from rejoinder.ir.catalog import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class MemorySource(SourceSide):
    """Inserted rows. They exist nowhere else, so the flow keeps them."""

    options = frozenset(FILE_OPTIONS)
    reader = staticmethod(read_inserted)
    keeps_changes = True
    takes_diffs = True

    def check(self, source: Source) -> None:
        check_files(source)

    def splits(self, session: SparkSession, source: Source, inputs: Inputs) -> DataFrame:
        from rejoinder.exchange.streaming.source_frames import inserted_splits

        return inserted_splits(session, source.name, source.options, inputs.inbox(source.name))


MEMORY = Connector("memory", MemorySource())

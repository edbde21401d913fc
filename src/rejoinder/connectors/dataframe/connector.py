"""Streaming DataFrames of the user, which each process declares again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoinder.connectors.connector import Connector, Inputs, SourceSide
from rejoinder.errors import UnknownName
from rejoinder.ir.catalog import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_METHODS = {"stream": "stream", "table": "keyed", "changelog": "changelog"}


class DataFrameSource(SourceSide):
    """A DataFrame. Spark tracks its position; its rows cannot be read again."""

    noun = "a DataFrame"
    passes_rows = True

    def splits(self, session: SparkSession, source: Source, inputs: Inputs) -> DataFrame:
        """Return the rows of the DataFrame as splits. Raises `UnknownName` if it is not declared in this process."""
        from rejoinder.exchange.streaming.source_frames import frame_splits

        if source.name not in inputs.frames:
            raise UnknownName(
                f"the DataFrame of `{source.name}` is not declared in this process",
                hint=f'call flow.{_METHODS[source.kind]}("{source.name}", …) again before running',
            )
        return frame_splits(inputs.frames[source.name], source.name)


DATAFRAME = Connector("dataframe", DataFrameSource(), is_listed=False)

"""Views as Spark DataFrames: a Python data source, batch for tables and streaming for changes.

The layers above pass plain functions that decide what is read and how it is partitioned. Workers import them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

Options = Mapping[str, str]
Partitions = Callable[[Options, dict[str, Any]], list[Any]]
Read = Callable[[Options, Any], Iterator[pa.RecordBatch]]
Latest = Callable[[Options], dict[str, Any]]


def register(
    session: SparkSession,
    name: str,
    schema_of: Callable[[Options], pa.Schema],
    partitions: Partitions,
    read: Read,
    first: Latest,
    latest: Latest,
) -> None:
    """Register `spark.read.format(name)` and `spark.readStream.format(name)` in a session."""

    class Reader(DataSourceReader):
        def __init__(self, options: Options) -> None:
            self.options = dict(options)

        def partitions(self) -> Sequence[InputPartition]:
            return [InputPartition(part) for part in partitions(self.options, {})]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            return read(self.options, partition.value)

    class StreamReader(DataSourceStreamReader):
        def __init__(self, options: Options) -> None:
            self.options = dict(options)

        def initialOffset(self) -> dict[str, Any]:
            return first(self.options)

        def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
            return latest(self.options)

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
            return [InputPartition(part) for part in partitions(self.options, {"start": start, "end": end})]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            return read(self.options, partition.value)

    class Views(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> StructType:
            return from_arrow_schema(schema_of(self.options))

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader(self.options)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return StreamReader(self.options)

    session.dataSource.register(Views)


def read_batch(session: SparkSession, name: str, options: Options) -> DataFrame:
    """Return a batch DataFrame of the data source."""
    return session.read.format(name).options(**options).load()


def read_stream(session: SparkSession, name: str, options: Options) -> DataFrame:
    """Return a streaming DataFrame of the data source."""
    return session.readStream.format(name).options(**options).load()

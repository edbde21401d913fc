"""The streaming query that drives the epochs."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

OnBatch = Callable[[DataFrame, int], None]


def start_query(splits: DataFrame, checkpoint: str, on_batch: OnBatch, *, once: bool, interval: str) -> StreamingQuery:
    """Start the query: until caught up, or for good with a trigger interval."""
    writer = splits.writeStream.foreachBatch(on_batch).option("checkpointLocation", checkpoint)
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)).start()


def wait_for(query: StreamingQuery, seconds: float | None = None) -> bool:
    """Wait until the query ends; False if it has not by then. Raises what Spark says went wrong."""
    if seconds is None:
        query.awaitTermination()
        return True
    return bool(query.awaitTermination(max(1, round(seconds))))


def is_failure(error: BaseException) -> bool:
    """Whether this is Spark's report of a failed query."""
    return isinstance(error, StreamingQueryException)

"""The streaming query that drives the epochs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

OnBatch = Callable[[DataFrame, int], None]

# The JVM sees a handful of rows per epoch: paths, references, reports. To make code for them costs more than it saves.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def start_query(
    splits: DataFrame, checkpoint: str, on_batch: OnBatch, *, name: str, once: bool, interval: str
) -> StreamingQuery:
    """Start the query: until caught up, or for good with a trigger interval. Spark's UI and progress show its name."""
    free = free_name(name, (query.name for query in splits.sparkSession.streams.active))
    writer = splits.writeStream.queryName(free).foreachBatch(on_batch).option("checkpointLocation", checkpoint)
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)).start()


def free_name(name: str, taken: Iterable[str | None]) -> str:
    """A name that no active query of the session has: Spark refuses a second one.

    >>> free_name("shop", ["shop", "shop (2)"])
    'shop (3)'
    """
    known = set(taken)
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in known)


@contextmanager
def interpreted(session: SparkSession) -> Iterator[None]:
    """A query that is started meanwhile runs without code generation, to its end; nothing else on the session does.

    A query takes the settings of its session along when it starts.
    """
    before = {name: session.conf.get(name, None) for name in INTERPRETED}
    try:
        for name, value in INTERPRETED.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, known in before.items():
            session.conf.unset(name) if known is None else session.conf.set(name, known)


def wait_for(query: StreamingQuery, seconds: float | None = None) -> bool:
    """Wait until the query ends; False if it has not by then. Raises what Spark says went wrong."""
    if seconds is None:
        query.awaitTermination()
        return True
    return bool(query.awaitTermination(max(1, round(seconds))))


def is_failure(error: BaseException) -> bool:
    """Whether this is Spark's report of a failed query."""
    return isinstance(error, StreamingQueryException)

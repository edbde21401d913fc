"""The streaming query that drives the epochs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

OnBatch = Callable[[DataFrame, int], None]

# The JVM sees few rows per epoch: paths, references, reports. Generating code for them costs more than it saves.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def start_query(
    splits: DataFrame, checkpoint: str, on_batch: OnBatch, *, name: str, once: bool, interval: str
) -> StreamingQuery:
    """Start the query: `once`, until all input is read, or with a trigger interval. Spark's UI shows the name."""
    free = free_name(name, (query.name for query in splits.sparkSession.streams.active))
    writer = splits.writeStream.queryName(free).foreachBatch(on_batch).option("checkpointLocation", checkpoint)
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)).start()


def free_name(name: str, taken: Iterable[str | None]) -> str:
    """Return a name that no active query of the session has: Spark rejects duplicates.

    >>> free_name("shop", ["shop", "shop (2)"])
    'shop (3)'
    """
    used = set(taken)
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return next(candidate for candidate in itertools.chain([name], numbered) if candidate not in used)


@contextmanager
def interpreted(session: SparkSession) -> Iterator[None]:
    """Disable code generation for queries that are started in the body, and for nothing else on the session.

    A query copies the settings of its session when it starts.
    """
    before = {name: session.conf.get(name, None) for name in INTERPRETED}
    try:
        for name, value in INTERPRETED.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value_before in before.items():
            session.conf.unset(name) if value_before is None else session.conf.set(name, value_before)


def wait_for(query: StreamingQuery, seconds: float | None = None) -> bool:
    """Wait until the query ends, at most `seconds`. Returns whether it has ended; raises Spark's error if it failed."""
    if seconds is None:
        query.awaitTermination()
        return True
    return bool(query.awaitTermination(max(1, round(seconds))))

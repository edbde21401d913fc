"""The streaming query that drives the epochs, and its checkpoint.

Spark identifies sources by their position, so a flow whose set of sources changes gets a new *generation* of the
checkpoint: the offsets of the last committed epoch, source by source, under new positions. New sources start afresh.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from rejoinder.errors import Corrupt, Unsupported

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


def next_generation(old: str, new: str, before: Sequence[str], after: Sequence[str], epoch: int) -> None:
    """Write the checkpoint `new` for the sources `after` from `old` with the sources `before`, as of an epoch."""
    if "://" in new:
        raise Unsupported(
            "the set of sources changed, and the checkpoint is not on a local disk",
            detail=f"checkpoint {new}",
            hint="define all sources before the first run, or keep the checkpoint on a shared file system",
        )
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    if epoch < 0:
        return
    lines = _offsets(old, epoch) if before else ["v1", json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0})]
    header, offsets = lines[:2], dict(zip(before, lines[2:], strict=False))
    _write(f"{new}/offsets/{epoch}", "\n".join([*header, *(offsets.get(name, "-") for name in after)]))
    _write(f"{new}/commits/{epoch}", 'v1\n{"nextBatchWatermarkMs":0}')
    if os.path.exists(f"{old}/metadata"):
        shutil.copy(f"{old}/metadata", f"{new}/metadata")
    for position, name in enumerate(after):
        if name in offsets and os.path.isdir(f"{old}/sources/{before.index(name)}"):
            shutil.copytree(f"{old}/sources/{before.index(name)}", f"{new}/sources/{position}")


def _offsets(checkpoint: str, epoch: int) -> list[str]:
    path = f"{checkpoint}/offsets/{epoch}"
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split("\n")
    except OSError as missing:
        raise Corrupt(
            f"Spark's checkpoint does not know epoch {epoch}",
            detail=f"`{path}`: {missing}",
            hint="restore the checkpoint that belongs to this state",
        ) from missing


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)

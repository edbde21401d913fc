"""Rounds as Spark stages: one job per epoch, rows of bytes between the rounds, only reports at the end.

A round is a function from the epoch's work, as text, and exchange batches to exchange batches. A `RejoinderError` in a
task is sent to the driver as a row, and raised there; Spark retries any other failure.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rejoinder import errors
from rejoinder.ir.splits import SPLITS_DDL, FileSplit, Split, splits_in, to_row

EXCHANGE = "bucket int, channel int, payload binary"
FAILURE = -2
MOST_TASKS = 256
WORK = "rejoinder.work"
DESCRIPTION = "spark.job.description"
CALL_SITE = "callSite.short"

Batches = Iterable[pa.RecordBatch]
Round = Callable[[str, Batches], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class SparkRound:
    """A round as a function for `mapInArrow`."""

    round: Round
    number: int
    python: tuple[int, int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the round. Forwards failures of earlier rounds, and yields its own `RejoinderError` as a row."""
        _freeze_garbage()
        received: Batches = _checked(batches)
        if self.number:
            received = list(batches)
            failed = [batch for batch in received if FAILURE in batch.column(1).to_pylist()]
            if failed:
                for batch in failed:
                    yield batch.filter(pc.equal(batch.column(1), FAILURE))
                return
        try:
            if sys.version_info[:2] != self.python:
                raise errors.RuntimeMismatch(
                    f"the workers run Python {sys.version_info[0]}.{sys.version_info[1]}",
                    detail=f"the driver runs {self.python[0]}.{self.python[1]}",
                    hint="set PYSPARK_PYTHON (spark.pyspark.python) to the same Python on every host",
                )
            context = TaskContext.get()
            assert context is not None, "a round runs in a task"
            yield from self.round(context.getLocalProperty(WORK) or "", received)
        except errors.RejoinderError as error:
            fields: dict[str, Any] = {"kind": type(error).__name__, "round": self.number}
            fields |= {"fact": error.fact, "detail": error.detail, "hint": error.hint, "values": error.values}
            payload = json.dumps(fields).encode()
            arrays = [pa.array([0], pa.int32()), pa.array([FAILURE], pa.int32()), pa.array([payload])]
            yield pa.RecordBatch.from_arrays(arrays, names=["bucket", "channel", "payload"])
        finally:
            pa.default_memory_pool().release_unused()


def attach(splits: DataFrame, rounds: Sequence[Round], buckets: int) -> DataFrame:
    """Return splits with rounds appended, and an exchange before each round but the first."""
    python = (sys.version_info[0], sys.version_info[1])
    rows = splits.mapInArrow(SparkRound(rounds[0], 0, python), EXCHANGE)
    for number, round_ in enumerate(rounds[1:], start=1):
        rows = rows.repartitionById(buckets, F.col("bucket")).mapInArrow(SparkRound(round_, number, python), EXCHANGE)
    return rows


def is_pattern(path: str) -> bool:
    """Whether Spark takes a path for a pattern."""
    return any(character in path for character in "\\*?[]{}")


def _checked(splits: Batches) -> Iterator[pa.RecordBatch]:
    """Raise `InputError` for a file whose name is a pattern: Spark would also read other files that match it."""
    for batch in splits:
        for split in splits_in(batch):
            if isinstance(split, FileSplit) and is_pattern(os.path.basename(split.path)):
                raise errors.InputError(
                    f"file `{split.path}` has a name that Spark takes for a pattern",
                    detail="it contains one of \\ * ? [ ] { }",
                    hint="rename the file and run again",
                )
        yield batch


def run_attached(rows: DataFrame, work: str, description: str = "") -> list[tuple[int, int, bytes]]:
    """Run rounds as one Spark job, which Spark's UI shows under `description`. Raises the error of the first round.

    Returns the rows of the last round: (bucket, channel, payload).
    """
    context = rows.sparkSession.sparkContext
    context.setLocalProperty(WORK, work)
    if description:  # Spark sets its own again before the next epoch
        context.setLocalProperty(DESCRIPTION, description)
    site: Any = context.getLocalProperty(CALL_SITE)
    try:
        collected = [(row[0], row[1], bytes(row[2])) for row in rows.collect()]
    finally:  # PySpark removes it, and then Spark would walk the stack for every stage of the next epoch
        context.setLocalProperty(CALL_SITE, site)
    failures = [json.loads(payload) for _, channel, payload in collected if channel == FAILURE]
    if failures:  # a later round may have failed because an earlier one sent nothing
        raise _error(min(failures, key=lambda fields: int(fields["round"])))
    return collected


@contextmanager
def description_kept(session: SparkSession) -> Iterator[None]:
    """Restore the job description of the user's thread at the end: it applies to all jobs of a thread."""
    context = session.sparkContext
    before: Any = context.getLocalProperty(DESCRIPTION)
    try:
        yield
    finally:
        context.setLocalProperty(DESCRIPTION, before)


def listed_splits(session: SparkSession, splits: Sequence[Split]) -> DataFrame:
    """Return these splits as a DataFrame, one task each, or several splits per task if there are many."""
    frame = session.createDataFrame([to_row(split) for split in splits], SPLITS_DDL)
    return frame.repartition(min(len(splits), MOST_TASKS)) if len(splits) > 1 else frame


def _error(fields: dict[str, Any]) -> errors.RejoinderError:
    kind = getattr(errors, fields["kind"], errors.RejoinderError)
    detail, hint, values = fields["detail"], fields["hint"], fields["values"]
    error: errors.RejoinderError = kind(fields["fact"], detail=detail, hint=hint, values=values)
    return error


_tasks = 0


def _freeze_garbage() -> None:
    """Exclude existing objects from garbage collection: PySpark collects after every task, over all imported modules.

    Early tasks import more modules, so this runs before a worker's first task, its second, fourth, eighth …
    """
    global _tasks
    _tasks += 1
    if _tasks & (_tasks - 1) == 0:
        gc.collect()
        gc.freeze()

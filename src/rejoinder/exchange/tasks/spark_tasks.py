"""Spark tasks outside of an epoch's rounds: a function of a number, or rows that are read by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from rejoinder.errors import RejoinderError

T = TypeVar("T")
Batches = Iterator[pa.RecordBatch]


def run_tasks(session: SparkSession, task: Callable[[int], T], count: int) -> list[T]:
    """Call the task with 0 … count − 1, each in a Spark task. Raises its `RejoinderError`, without retries."""
    context = session.sparkContext
    results = context.parallelize(range(count), count).map(CatchErrors(task)).collect()
    for _, failure in results:
        if failure is not None:
            raise failure
    return [result for result, _ in results]


@dataclass(frozen=True)
class CatchErrors:
    """A task that returns a `RejoinderError` as a value."""

    task: Callable[[int], Any]

    def __call__(self, number: int) -> tuple[Any, RejoinderError | None]:
        """Return the result and None, or None and the error."""
        try:
            return self.task(number), None
        except RejoinderError as failure:
            return None, failure


def frame_of(
    session: SparkSession, schema: pa.Schema, read: Callable[[int], Iterator[pa.RecordBatch]], count: int
) -> DataFrame:
    """Return a DataFrame whose partitions are `read(0)` … `read(count − 1)`, read whenever it is used."""
    numbers = session.range(0, count, 1, count)
    return numbers.mapInArrow(_Numbered(read), from_arrow_schema(schema))


def frame_through(
    frame: DataFrame, keys: Sequence[str], count: int, function: Callable[[Batches], Batches], schema: pa.Schema
) -> DataFrame:
    """Return a DataFrame with a function applied to each of `count` partitions; equal keys are in the same one."""
    partitioned = frame.repartition(count, *map(_column, keys)) if keys else frame
    return partitioned.mapInArrow(function, from_arrow_schema(schema))


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


@dataclass(frozen=True)
class _Numbered:
    """Reads the partitions whose numbers are the rows of its input."""

    read: Callable[[int], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.read(number)

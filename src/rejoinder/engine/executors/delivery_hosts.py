"""The hosts of deliveries: this process, or Spark's executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from rejoinder.connectors.delivery import EpochChanges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


class LocalHost:
    """Runs all parts in this process, one after the other, for the test driver. `messages` are those sent, by sink."""

    session = None

    def __init__(self) -> None:
        self.messages: dict[str, list[dict[str, Any]]] = {}

    def run(self, task: Callable[[int], T], count: int) -> list[T]:
        """Call the task count times."""
        return [task(number) for number in range(count)]

    def whole(self, changes: EpochChanges) -> pa.Table:
        """Return the changes as an Arrow table."""
        return changes.gathered()


@dataclass(frozen=True)
class SparkHost:
    """Runs parts on the executors. A DataFrame of the changes is read there too, unless there is only one part."""

    session: SparkSession
    messages: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def run(self, task: Callable[[int], T], count: int) -> list[T]:
        """Run a job with a task for each part."""
        from rejoinder.exchange.tasks.spark_tasks import run_tasks

        return run_tasks(self.session, task, count)

    def whole(self, changes: EpochChanges) -> DataFrame:
        """Return the changes as a DataFrame, which can be read repeatedly."""
        from rejoinder.exchange.tasks.spark_tasks import frame_of

        if changes.parts <= 1:
            return self.session.createDataFrame(changes.gathered())
        return frame_of(self.session, changes.delivered_schema, PartReader(changes), changes.parts)


@dataclass(frozen=True)
class PartReader:
    """Reads a part where its task runs."""

    changes: EpochChanges

    def __call__(self, number: int) -> Any:
        """Yield the batches of a part."""
        for chunk in self.changes.part(number):
            yield from chunk.to_batches()

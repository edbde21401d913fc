"""Deliveries: the changes of an epoch for a sink, and the interface of sink targets.

A *delivery* is the net changes of one view in one committed epoch. It is split by row hash into *parts* of bounded
size. A target reads them in one of three ways: `run` calls a function for each part where tasks run (on Spark's
executors, or in this process if there is only one part), `rows` reads chunks in this process, and `whole` returns a
DataFrame.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from rejoinder.ir.catalog import Sink
from rejoinder.kernels.arrow.columns import DIFF, diffs, take, without
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.net_rows import net_rows
from rejoinder.store.runs.run import RunRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART_ROWS = 100_000
CHUNK_ROWS = 1 << 16
DELIVERED_COLUMNS = pa.schema([("_epoch", pa.int64()), ("_diff", pa.int64())])

T = TypeVar("T")


@dataclass(frozen=True)
class EpochChanges:
    """The net changes of a view after `after` up to `epoch`, as changes of `epoch`. Sent to tasks."""

    store: ObjectStore
    view: str
    refs: tuple[RunRef, ...]
    schema: pa.Schema
    after: int
    epoch: int

    @property
    def parts(self) -> int:
        """The number of parts; 0 if there are no changes."""
        rows = sum(ref.rows for ref in self.refs)
        return -(-rows // PART_ROWS)

    @property
    def is_empty(self) -> bool:
        """Whether no change is left after netting: changes of different buckets may cancel out.

        Only a delivery of one part is checked, since that is cheap; larger ones count as not empty.
        """
        return self.parts == 0 or (self.parts == 1 and next(self.part(0), None) is None)

    def part(self, number: int, parts: int | None = None) -> Iterator[pa.Table]:
        """Yield the changes of a part in chunks: the view's columns, `_epoch` and `_diff`; retractions first."""
        hashes = hash_range(number, parts or self.parts)
        table = net_rows(self.store, self.refs, self.schema, after=self.after, until=self.epoch, hashes=hashes)
        signs = diffs(table)
        table = without(table, [DIFF]).select(self.schema.names)
        table = table.append_column(DELIVERED_COLUMNS.field(0), pa.array(np.full(len(signs), self.epoch)))
        table = table.append_column(DELIVERED_COLUMNS.field(1), pa.array(signs))
        table = take(table, np.argsort(signs > 0, kind="stable"))
        for start in range(0, table.num_rows, CHUNK_ROWS):
            yield table.slice(start, CHUNK_ROWS)

    @property
    def delivered_schema(self) -> pa.Schema:
        """The columns of a chunk."""
        return pa.schema([*self.schema, *DELIVERED_COLUMNS])

    def gathered(self) -> pa.Table:
        """Read all changes into one table."""
        chunks = [chunk for number in range(self.parts) for chunk in self.part(number)]
        return pa.concat_tables(chunks) if chunks else self.delivered_schema.empty_table()


@dataclass(frozen=True)
class OfPart:
    """Adapts a task on the chunks of a part to a function of the part's number, which can be sent to executors."""

    changes: EpochChanges
    parts: int
    task: Callable[[int, Iterator[pa.Table]], Any]

    def __call__(self, number: int) -> Any:
        """Run the task on a part."""
        return self.task(number, self.changes.part(number, self.parts))


class Host(Protocol):
    """Runs the tasks of deliveries: in this process, or on Spark."""

    @property
    def session(self) -> SparkSession | None:
        """The Spark session; None if tasks run in this process."""

    @property
    def messages(self) -> dict[str, list[dict[str, Any]]]:
        """Without Spark: the messages that were sent, by sink."""

    def run(self, task: Callable[[int], T], count: int) -> list[T]:
        """Call the task with 0 … count − 1, in any process. Returns the results in order."""

    def whole(self, changes: EpochChanges) -> Any:
        """Return all changes as one object: a DataFrame on Spark, an Arrow table in this process."""


@dataclass(frozen=True)
class Delivery:
    """One epoch for one sink."""

    sink: Sink
    identity: str
    """Identifies the sink, also against a later sink of the same name."""
    changes: EpochChanges
    content: EpochChanges
    """All rows of the view after the epoch, as changes."""
    host: Host
    is_unique: Callable[[Sequence[str]], bool]
    """Returns whether the query of the view proves that columns are a unique key."""
    is_snapshot: bool = False
    """Whether the changes are the whole content of the view, as the first delivery of a sink is."""
    writer: int = 0
    """The number of earlier drivers of this flow. A driver with a lower number has been replaced."""
    check_fence: Callable[[], None] = lambda: None
    """Raises `Fenced` if this driver has been replaced. Call it before a step that cannot be undone."""
    is_first: bool = True
    """Whether the sink got no delivery before, so that the target may have to be created."""

    @property
    def epoch(self) -> int:
        """The epoch that is delivered."""
        return self.changes.epoch

    def rows(self) -> Iterator[pa.Table]:
        """Yield all changes chunk by chunk, in this process."""
        for number in range(self.changes.parts):
            yield from self.changes.part(number)

    def run(self, task: Callable[[int, Iterator[pa.Table]], T]) -> list[T]:
        """Run a task on each part: in this process if there is only one part, else where the host runs tasks."""
        parts = self.changes.parts
        of_part = OfPart(self.changes, parts, task)
        return [of_part(0)] if parts == 1 else self.host.run(of_part, parts)

    def whole(self) -> Any:
        """Return all changes as a DataFrame; in the test driver, as an Arrow table."""
        return self.host.whole(self.changes)


def absolute(path: str) -> str:
    """Make a local path absolute: workers and the JVM may have another working directory."""
    return path if "://" in path or path.startswith("file:") else os.path.abspath(path)


class Target:
    """The system that a sink writes to. By default it stores no epochs and cannot be checked."""

    stores_epochs: ClassVar[bool] = False
    """Whether it stores the epoch atomically with the rows, so that delivery is exactly once."""

    def check(self) -> None:
        """Raise if the target cannot be written to. Called when the sink is defined and before its first delivery."""

    def delivered(self) -> int | None:
        """Return the last delivered epoch; None if there is none or the target does not store epochs.

        Called when the flow starts and before each delivery, so it must be cheap.
        """
        return None

    def deliver(self, delivery: Delivery) -> None:
        """Write one epoch. May be called again with an epoch whose delivery failed half way."""
        raise NotImplementedError

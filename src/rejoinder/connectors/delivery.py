"""What a sink is given of an epoch, and what it has to do with it.

A *delivery* is the net changes of one view in one committed epoch. It is cut by row hash into *parts* of bounded size.
A target writes them in whichever way suits it: `run` hands each part to a function where tasks run (on Spark's
executors, or here if there is one part only), `rows` reads them here chunk by chunk, `whole` gives a DataFrame.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from rejoinder.ir.catalog import Sink
from rejoinder.kernels.arrow.columns import DIFF, diffs, take, without
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.state.changelog_reader import net_rows
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.run import RunRef

PART_ROWS = 100_000
CHUNK_ROWS = 1 << 16
DELIVERED_COLUMNS = pa.schema([("_epoch", pa.int64()), ("_diff", pa.int64())])

T = TypeVar("T")


@dataclass(frozen=True)
class EpochChanges:
    """The net changes of a view after `after` up to `epoch`, told as changes of `epoch`. Travels to tasks."""

    store: ObjectStore
    view: str
    refs: tuple[RunRef, ...]
    schema: pa.Schema
    after: int
    epoch: int

    @property
    def parts(self) -> int:
        """Into how many parts they are cut; 0 if there are no changes."""
        rows = sum(ref.rows for ref in self.refs)
        return -(-rows // PART_ROWS)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left after netting, as far as one part tells: buckets may write what cancels out."""
        return self.parts == 0 or (self.parts == 1 and next(self.part(0), None) is None)

    def part(self, number: int, parts: int | None = None) -> Iterator[pa.Table]:
        """The changes of a part in chunks: the view's columns, `_epoch` and `_diff`; retractions first."""
        hashes = hash_range(number, parts or self.parts)
        table = net_rows(self.store, self.refs, self.schema, after=self.after, until=self.epoch, hashes=hashes)
        signs = diffs(table)
        table = without(table, [DIFF]).select(self.schema.names)
        table = table.append_column(DELIVERED_COLUMNS.field(0), pa.array(np.full(len(signs), self.epoch)))
        table = table.append_column(DELIVERED_COLUMNS.field(1), pa.array(signs))
        table = take(table, np.argsort(signs > 0, kind="stable"))
        for at in range(0, table.num_rows, CHUNK_ROWS):
            yield table.slice(at, CHUNK_ROWS)

    @property
    def delivered_schema(self) -> pa.Schema:
        """The columns of a chunk."""
        return pa.schema([*self.schema, *DELIVERED_COLUMNS])


@dataclass(frozen=True)
class OfPart:
    """A function of a part's chunks as one of the part's number, to be sent to where it runs."""

    changes: EpochChanges
    parts: int
    task: Callable[[int, Iterator[pa.Table]], Any]

    def __call__(self, number: int) -> Any:
        """Run the task on a part."""
        return self.task(number, self.changes.part(number, self.parts))


class Host(Protocol):
    """Where deliveries are worked on."""

    def run(self, task: Callable[[int], T], count: int) -> list[T]:
        """Call the task with 0 … count − 1, anywhere; give what it returned, in order."""

    def whole(self, changes: EpochChanges) -> Any:
        """All changes as one object of the host's: a DataFrame on Spark."""


@dataclass(frozen=True)
class Delivery:
    """One epoch for one sink. `identity` tells this sink from every other one, also from a later one of its name.

    `content` is all rows of the view after the epoch, told as changes. `is_unique` says of columns whether the query of
    the view proves that no two rows have them in common. `writer` counts the drivers that this flow has had: a lower
    number has been replaced. `check_fence` raises `Fenced` if we have; call it before a step that cannot be undone.
    `is_first`: the sink was given nothing before, so the target may have to be made.
    """

    sink: Sink
    identity: str
    changes: EpochChanges
    content: EpochChanges
    host: Host
    is_unique: Callable[[Sequence[str]], bool]
    is_snapshot: bool = False
    writer: int = 0
    check_fence: Callable[[], None] = lambda: None
    is_first: bool = True

    @property
    def epoch(self) -> int:
        """The epoch that is delivered."""
        return self.changes.epoch

    def rows(self) -> Iterator[pa.Table]:
        """All changes, chunk by chunk, in this process."""
        for number in range(self.changes.parts):
            yield from self.changes.part(number)

    def run(self, task: Callable[[int, Iterator[pa.Table]], T]) -> list[T]:
        """Run a task on each part: here if there is but one, else wherever the host runs tasks."""
        parts = self.changes.parts
        of_part = OfPart(self.changes, parts, task)
        return [of_part(0)] if parts == 1 else self.host.run(of_part, parts)

    def whole(self) -> Any:
        """All changes as a DataFrame (in the test driver: as an Arrow table)."""
        return self.host.whole(self.changes)


def absolute(path: str) -> str:
    """A local path from the root: workers and the JVM may have been started elsewhere."""
    return path if "://" in path or path.startswith("file:") else os.path.abspath(path)


class Target(Protocol):
    """The far side of a sink. `remembers`: it keeps the epoch together with the rows, so that nothing comes twice."""

    remembers: ClassVar[bool]

    def check(self) -> None:
        """Raise if it could not be written to. Called when the sink is defined, and before its first delivery."""

    def delivered(self) -> int | None:
        """The last epoch that it knows it has; None if it knows of none, or does not remember.

        Called when the flow starts and before each delivery, so it must be cheap.
        """

    def deliver(self, delivery: Delivery) -> None:
        """Take an epoch as a whole. It may be called again with an epoch that failed half way."""

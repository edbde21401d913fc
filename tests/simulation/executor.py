"""Tasks as a cluster runs them: in any order, some twice, some tried again after they died half way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

import pyarrow as pa

from rejoinder.engine.executors.delivery_hosts import LocalHost
from rejoinder.ir.splits import FileSplit, Split, split_batch, splits_in
from rejoinder.runtime.bucket_rounds import BucketRound, EpochWork, ScanRound, by_bucket, exchange_batch
from rejoinder.runtime.task import Report
from rejoinder.state.executor import LocalExecutor, reports_from

T = TypeVar("T")


class Line(Protocol):
    """What the executor asks of its driver."""

    def strikes(self, fault: str, what: str, name: str) -> bool:
        """Whether a fault strikes here."""

    def pick(self, count: int) -> int:
        """A number below `count`."""

    def took(self, paths: list[str]) -> None:
        """Note that an epoch reads files."""


class SimulatedExecutor(LocalExecutor):
    """Runs each bucket of a round as a task of its own."""

    def __init__(self, line: Callable[[], Line | None]) -> None:
        super().__init__()
        self._line = line

    def run(self, work: EpochWork, splits: object) -> dict[int, Report]:
        """Run all rounds of an epoch."""
        assert isinstance(splits, Iterable)
        listed = list(splits)
        line = self._line()
        if line is not None:
            read = [split for batch in listed for split in splits_in(batch)]
            line.took([split.path for split in read if isinstance(split, FileSplit)])
        return self._run(work, listed)

    def run_listed(self, work: EpochWork, splits: Sequence[Split]) -> dict[int, Report]:
        """Run all rounds of a hydration, which reads nothing that was not read before."""
        return self._run(work, [split_batch(splits)])

    def _run(self, work: EpochWork, listed: list[pa.RecordBatch]) -> dict[int, Report]:
        rows = self._attempts("scan", lambda: ScanRound(work)(listed))
        for number in range(1, len(work.plan.rounds)):
            buckets = by_bucket(rows)
            rows = []
            for bucket in self._shuffled(sorted(buckets)):
                batch = exchange_batch([(bucket, channel, each.to_pybytes()) for channel, each in buckets[bucket]])
                rows += self._attempts(f"round {number}", partial(BucketRound(work, number), [batch]))
        return reports_from(rows)

    def _attempts(self, what: str, task: Callable[[], Iterator[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """Run a task, perhaps twice, perhaps a first time half way; the rows of one attempt count."""
        line = self._line()
        first = None
        if line is not None and line.strikes("twice", what, ""):
            half = line.pick(3)
            first = list(task()) if half else list(itertools.islice(task(), 1))
            if half == 1:
                list(task())
                return first
        return list(task())

    def _shuffled(self, buckets: list[int]) -> list[int]:
        line = self._line()
        if line is None or len(buckets) < 2 or not line.strikes("twice", "order", ""):
            return buckets
        at = line.pick(len(buckets))
        return buckets[at:] + buckets[:at]


class SimulatedHost(LocalHost):
    """Parts of a delivery as tasks: some run twice."""

    def __init__(self, line: Callable[[], Line | None]) -> None:
        super().__init__()
        self._line = line

    def run(self, task: Callable[[int], T], count: int) -> list[T]:
        """Call the task for each part."""
        return [self._attempt(task, number) for number in range(count)]

    def _attempt(self, task: Callable[[int], T], number: int) -> T:
        line = self._line()
        results: Sequence[T] = [task(number)]
        if line is not None and line.strikes("twice", "part", str(number)):
            results = [*results, task(number)]
        return results[-1 if line is None else line.pick(len(results))]

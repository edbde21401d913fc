"""The Spark executor: runs the rounds of an epoch as the stages of one job.

The stages are part of the streaming query and do not change from epoch to epoch, so Spark plans them once. The state
before the epoch changes; it reaches the tasks as a local property of the job. With adaptive execution, Spark would run
stages before `foreachBatch` is called. On such a session the stages are attached to the splits when an epoch runs.
"""

from __future__ import annotations

import pickle
import socket
import weakref
import zlib
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from rejoinder.errors import StateError
from rejoinder.exchange.session.spark_session import is_adaptive, is_local, tasks_at_once
from rejoinder.exchange.tasks.spark_rounds import attach, description_kept, listed_splits, run_attached
from rejoinder.host.caps import use_caps
from rejoinder.host.entropy import token
from rejoinder.host.memory import share_memory
from rejoinder.ir.allowed_functions import refuse_others
from rejoinder.ir.logical import EMIT_AT
from rejoinder.ir.splits import Split, StateSplit
from rejoinder.kernels.user_functions.function_imports import load
from rejoinder.plan.physical.dataflow import DueScan
from rejoinder.runtime.bucket_rounds import Batches, BucketRound, EpochWork, ScanRound, Setting, exchange_batch
from rejoinder.runtime.task import Report
from rejoinder.state.executor import LocalExecutor, reports_from
from rejoinder.store.commits.unnamed_files import MARKERS
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.run import lies_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IN_PROCESS_ROWS = 1 << 18
"""Due changes up to this number of rows are emitted in this process: a Spark job costs more than so few rows."""
CLOCK = "clock"
"""A split of no source, for an epoch in which only the clock has advanced."""


def packed(setting: Setting) -> bytes:
    """Return a setting as bytes."""
    return zlib.compress(pickle.dumps(setting))


@lru_cache(maxsize=8)
def unpacked(data: bytes) -> Setting:
    """Return the setting that was packed. A worker reads it once, and keeps what steps derive from the plan."""
    setting: Setting = pickle.loads(zlib.decompress(data))  # noqa: S301 - what our driver sent, as PySpark itself does
    return setting


def packed_work(work: EpochWork) -> str:
    """Return the work of an epoch as short text. Spark sends it with every task, as JSON, so quotes would be costly."""
    return b64encode(zlib.compress(work.to_text().encode())).decode()


@lru_cache(maxsize=2)
def work_of(setting: bytes, text: str) -> EpochWork:
    """Return the work of an epoch, which a worker reads once for all its rounds."""
    return EpochWork.from_text(unpacked(setting), zlib.decompress(b64decode(text)).decode())


@dataclass(frozen=True)
class StagedRound:
    """One round as a worker runs it. The setting is sent with the stage, the work with the epoch.

    PySpark reads a function again for every task. With a plan of 1,000 steps that took longer than most tasks, so the
    setting is packed, and each worker unpacks it once.
    """

    setting: bytes
    number: int
    marker: str = ""
    tasks_at_once: int = 0
    """The number of concurrent tasks of an executor; 0 means one for each core of its host."""

    def __call__(self, text: str, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Run the round of the epoch whose packed work is `text`."""
        work = work_of(self.setting, text)
        if self.marker:
            check_marker(work.store, self.marker)
        use_caps(work.setting.caps)
        share_memory(self.tasks_at_once)
        return ScanRound(work)(batches) if self.number == 0 else BucketRound(work, self.number)(batches)


@dataclass(frozen=True)
class Import:
    """A round that only imports functions, to check that a worker can."""

    functions: tuple[str, ...]

    def __call__(self, text: str, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Import the functions."""
        for name in self.functions:
            load(name)
        return iter(())


def make_marker(owner: object, store: ObjectStore, writer: str) -> str:
    """Write a marker object, by which workers on other hosts check that they see the same store. Returns its name.

    It is deleted with its owner. Its name contains the identity of the driver, so that vacuum can remove the markers of
    drivers that were killed.
    """
    marker = f"{MARKERS}/{writer}-{token(8)}"
    store.put(marker, b"")
    weakref.finalize(owner, store.delete, [marker])
    return marker


def check_marker(store: ObjectStore, marker: str) -> None:
    """Raise `StateError` if this worker does not see the state of the driver: the driver would not see its files."""
    if not store.exists(marker):
        raise StateError(
            "a worker cannot see the state",
            detail=f"on host {socket.gethostname()} there is no `{marker}`, which the driver wrote to {store.url}",
            hint="use a state directory that the driver and all workers can access: a shared file system, s3://, gs:// "
            "or az://",
        )


def due_rows(work: EpochWork) -> int:
    """Return the number of rows to read to emit due changes: those of all runs with a due change."""
    return sum(
        ref.rows
        for scan in work.plan.scans.values()
        if isinstance(scan, DueScan)
        for spine in work.before.get(scan.pending.id, ())
        for ref in spine.refs
        if lies_in(ref, EMIT_AT, scan.after, scan.until)
    )


class SparkExecutor:
    """Runs an epoch as one job, or several with adaptive execution. `splits` is a DataFrame from `prepare`."""

    def __init__(self, session: SparkSession, name: str = "rejoinder") -> None:
        self.session = session
        self.name = name
        self._marker = ""

    def prepare(self, splits: DataFrame, setting: Setting) -> DataFrame:
        """Return the DataFrame of the streaming query: splits, with rounds attached unless execution is adaptive."""
        self._is_adaptive = is_adaptive(self.session)
        return splits if self._is_adaptive else self._staged(splits, setting)

    def run(self, work: EpochWork, splits: object) -> dict[int, Report]:
        """Run all rounds of an epoch."""
        frame = cast("DataFrame", splits)
        reports = self._run(work, self._staged(frame, work.setting) if self._is_adaptive else frame)
        due = work.due_rows()
        if reports or not due:
            return reports
        # Without splits Spark runs no task, and nobody looked for the rows that enter or leave by the clock.
        if sum(due.values()) <= IN_PROCESS_ROWS:
            return LocalExecutor().run_listed(work, ())
        return self._run(work, self._staged(listed_splits(self.session, [StateSplit(CLOCK)]), work.setting))

    def run_listed(self, work: EpochWork, splits: Sequence[Split]) -> dict[int, Report]:
        """Run all rounds on listed splits. A small number of due changes is emitted in this process."""
        if not splits:
            return {}
        if all(isinstance(scan, DueScan) for scan in work.plan.scans.values()) and due_rows(work) <= IN_PROCESS_ROWS:
            return LocalExecutor().run_listed(work, splits)
        with description_kept(self.session):
            frame = self._staged(listed_splits(self.session, splits), work.setting)
            return self._run(work, frame, "existing rows at epoch")

    def run_frame(self, work: EpochWork, splits: DataFrame) -> dict[int, Report]:
        """Run all rounds of a hydration on a DataFrame of splits."""
        with description_kept(self.session):
            return self._run(work, self._staged(splits, work.setting), "existing rows at epoch")

    def check(self, functions: Collection[str]) -> None:
        """Import the functions in a worker."""
        refuse_others(functions)
        if functions:
            frame = attach(listed_splits(self.session, [StateSplit("functions")]), [Import(tuple(functions))], 1)
            with description_kept(self.session):
                run_attached(frame, "", f"{self.name} functions")

    def _staged(self, splits: DataFrame, setting: Setting) -> DataFrame:
        """Attach all rounds to the splits. The result is the reports of the last round."""
        if not self._marker and setting.store.is_local and not is_local(self.session):
            self._marker = make_marker(self, setting.store, setting.writer)
        tasks = tasks_at_once(self.session)
        data = packed(setting)
        rounds = [StagedRound(data, number, self._marker, tasks) for number in range(len(setting.plan.rounds))]
        return attach(splits, rounds, setting.buckets)

    def _run(self, work: EpochWork, frame: DataFrame, what: str = "epoch") -> dict[int, Report]:
        rows = run_attached(frame, packed_work(work), f"{self.name} {what} {work.epoch}")
        return reports_from([exchange_batch(rows)]) if rows else {}

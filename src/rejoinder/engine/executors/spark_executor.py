"""Spark as executor: the rounds of an epoch as the stages of one job.

The stages are part of the streaming query and do not change from epoch to epoch, so that Spark plans nothing twice;
what does change (the state before the epoch) reaches the tasks as a local property of the job. Adaptive execution would
run stages before it asks us: on a session that has it, an epoch's stages are put behind its splits when it is run.
"""

from __future__ import annotations

import socket
import weakref
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from rejoinder.engine.executors.executor import LocalExecutor, reports_from
from rejoinder.errors import StateError
from rejoinder.exchange.session.spark_session import is_adaptive, is_local, tasks_at_once
from rejoinder.exchange.tasks.spark_rounds import attach, description_kept, listed_splits, run_attached
from rejoinder.host.caps import use_caps
from rejoinder.host.entropy import token
from rejoinder.host.memory import share_memory
from rejoinder.ir.allowed_functions import refuse_others
from rejoinder.ir.logical import EMIT_AT
from rejoinder.plan.physical.dataflow import DueScan
from rejoinder.runtime.bucket_rounds import Batches, BucketRound, EpochWork, ScanRound, Setting, exchange_batch
from rejoinder.runtime.python_function import load
from rejoinder.runtime.task import Report
from rejoinder.state.flow_state import Listed
from rejoinder.store.commits.unnamed_files import MARKERS
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.run import lies_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IN_PROCESS_ROWS = 1 << 18
"""A release pass that reads no more is no job of its own: a job costs more than so few rows."""


@dataclass(frozen=True)
class StagedRound:
    """One round as a worker runs it: the setting came with the stage, the work comes with the epoch."""

    setting: Setting
    number: int
    marker: str = ""
    tasks_at_once: int = 0
    """Of an executor; 0: as many as its host has cores."""

    def __call__(self, text: str, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Run the round of the epoch that `text` describes."""
        if self.marker:
            check_marker(self.setting.store, self.marker)
        use_caps(self.setting.caps)
        share_memory(self.tasks_at_once)
        work = EpochWork.from_text(self.setting, text)
        return ScanRound(work)(batches) if self.number == 0 else BucketRound(work, self.number)(batches)


@dataclass(frozen=True)
class Import:
    """A round that does nothing but import functions, to know whether a worker can."""

    functions: tuple[str, ...]

    def __call__(self, text: str, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Import them."""
        for name in self.functions:
            load(name)
        return iter(())


def make_marker(owner: object, store: ObjectStore, writer: str) -> str:
    """An object that tells workers of other hosts that they see what we see; it goes with its owner.

    It carries the identity of its driver: vacuum removes those of drivers that were killed.
    """
    marker = f"{MARKERS}/{writer}-{token(8)}"
    store.put(marker, b"")
    weakref.finalize(owner, store.delete, [marker])
    return marker


def check_marker(store: ObjectStore, marker: str) -> None:
    """Refuse to work where the state of the driver is not: what is written here nobody else would find."""
    if not store.exists(marker):
        raise StateError(
            "a worker cannot see the state",
            detail=f"on host {socket.gethostname()} there is no `{marker}`, which the driver wrote to {store.url}",
            hint="put the state where the driver and all workers see it: a shared file system, s3://, gs:// or az://",
        )


def due_rows(work: EpochWork) -> int:
    """How many rows a release pass reads: those of the runs that hold some that are due."""
    return sum(
        ref.rows
        for scan in work.plan.scans.values()
        if isinstance(scan, DueScan)
        for spine in work.before.get(scan.pending.id, ())
        for ref in spine.refs
        if lies_in(ref, EMIT_AT, scan.after, scan.until)
    )


class SparkExecutor:
    """Runs an epoch as one job, several with adaptive execution; `splits` is a DataFrame that `prepare` gave."""

    def __init__(self, session: SparkSession, name: str = "rejoinder") -> None:
        self.session = session
        self.name = name
        self._marker = ""

    def prepare(self, splits: DataFrame, setting: Setting) -> DataFrame:
        """What the streaming query is made of: the splits, with the rounds behind them if they may stand there."""
        self._is_adaptive = is_adaptive(self.session)
        return splits if self._is_adaptive else self._staged(splits, setting)

    def run(self, work: EpochWork, splits: object) -> dict[int, Report]:
        """Run all rounds of an epoch."""
        frame = cast("DataFrame", splits)
        return self._run(work, self._staged(frame, work.setting) if self._is_adaptive else frame)

    def run_listed(self, work: EpochWork, splits: Sequence[Listed]) -> dict[int, Report]:
        """Run all rounds on splits that are named one by one; what becomes due, if it is little, in this process."""
        if not splits:
            return {}
        if all(isinstance(scan, DueScan) for scan in work.plan.scans.values()) and due_rows(work) <= IN_PROCESS_ROWS:
            return LocalExecutor().run_listed(work, splits)
        with description_kept(self.session):
            frame = self._staged(listed_splits(self.session, splits), work.setting)
            return self._run(work, frame, "existing rows at epoch")

    def run_frame(self, work: EpochWork, splits: DataFrame) -> dict[int, Report]:
        """Run all rounds of a hydration on splits of any kind."""
        with description_kept(self.session):
            return self._run(work, self._staged(splits, work.setting), "existing rows at epoch")

    def check(self, functions: Collection[str]) -> None:
        """Import them in a worker."""
        refuse_others(functions)
        if functions:
            frame = attach(listed_splits(self.session, [("functions", None, 0, None)]), [Import(tuple(functions))], 1)
            with description_kept(self.session):
                run_attached(frame, "", f"{self.name} functions")

    def _staged(self, splits: DataFrame, setting: Setting) -> DataFrame:
        """Put all rounds behind the splits; the result is what the last round reports."""
        if not self._marker and setting.store.is_local and not is_local(self.session):
            self._marker = make_marker(self, setting.store, setting.writer)
        tasks = tasks_at_once(self.session)
        rounds = [StagedRound(setting, number, self._marker, tasks) for number in range(len(setting.plan.rounds))]
        return attach(splits, rounds, setting.buckets)

    def _run(self, work: EpochWork, frame: DataFrame, what: str = "epoch") -> dict[int, Report]:
        rows = run_attached(frame, work.to_text(), f"{self.name} {what} {work.epoch}")
        return reports_from([exchange_batch(rows)]) if rows else {}

"""The rounds of an epoch as functions from exchange batches to exchange batches: the same on Spark and in process.

An exchange row is `bucket int, channel int, payload binary`. The payload is a delta for that channel of the plan, or,
for channel `REPORT`, the report of earlier rounds of the bucket to the driver. Payloads for later rounds are forwarded
unchanged to the same bucket.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.faults import reach
from rejoinder.host.caps import Caps, caps
from rejoinder.host.memory import limited_memory
from rejoinder.ir.allowed_functions import refuse_others
from rejoinder.ir.logical import EMIT_AT
from rejoinder.ir.splits import FileSplit, RecordsSplit, RowsSplit, Split, StateSplit, splits_in
from rejoinder.kernels.arrow.columns import PARTITION, contiguous, drop_unit_diffs, without
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.kernels.arrow.scatter import decode, encode, sorted_by_hash
from rejoinder.plan.physical.dataflow import Dataflow, Scan, SourceScan
from rejoinder.plan.physical.steps import Current, OnTime, Step
from rejoinder.runtime.epoch_caps import check_intake
from rejoinder.runtime.null_columns import NullColumns
from rejoinder.runtime.scan import largest_times, scan
from rejoinder.runtime.steps.arrange import insert_runs
from rejoinder.runtime.steps.emit import insert_changelog_runs
from rejoinder.runtime.steps.step_registry import STEP_FUNCTIONS
from rejoinder.runtime.steps.time.on_time import has_late_rows
from rejoinder.runtime.task import MAX_PAIRS, Clock, Report, Task
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.run import keep_open, lies_in
from rejoinder.store.runs.spine import Spine
from rejoinder.store.runs.spool import INLINE_BYTES, Spool, is_reference, read_spooled

REPORT = -1
PAYLOAD_BYTES = 16 << 20
EXCHANGE = pa.schema([("bucket", pa.int32()), ("channel", pa.int32()), ("payload", pa.binary())])

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Setting:
    """The settings of a dataflow that stay the same from epoch to epoch."""

    plan: Dataflow
    store: ObjectStore
    buckets: int
    """Number of buckets, which is the parallelism."""
    history: int
    """Number of epochs that changelogs keep apart."""
    spool: Spool | None = None
    """Files by which rounds on one host pass large deltas; None on a cluster."""
    max_pairs: int = MAX_PAIRS
    """Limit of pairs that one lookup may produce."""
    expiry: Mapping[str, Expiry] = field(default_factory=dict)
    """By arrangement, the expired rows that a hydration must not read."""
    caps: Caps = field(default_factory=caps)
    writer: str = ""
    """The identity of the driver (`engine.publisher`)."""
    hydrates: bool = False
    """Whether this is a hydration. It reads rows of earlier epochs, so the caps of an epoch do not apply."""

    def __post_init__(self) -> None:
        """Refuse functions that this process does not allow. Every task needs a setting, so none runs without check."""
        refuse_others(self.plan.functions)


@dataclass(frozen=True)
class EpochWork:
    """The input that all tasks of an epoch share."""

    setting: Setting
    epoch: int
    before: dict[str, tuple[Spine, ...]] = field(repr=False)
    """The state before the epoch: by arrangement or changelog, the spine of each bucket."""
    clock: Clock = field(default_factory=Clock)

    @property
    def plan(self) -> Dataflow:
        """The rounds and their steps."""
        return self.setting.plan

    @property
    def store(self) -> ObjectStore:
        """The store of the runs."""
        return self.setting.store

    @property
    def is_capped(self) -> bool:
        """Whether the caps of an epoch apply: the tasks read sources, and not for a hydration."""
        return not self.setting.hydrates and any(isinstance(scan, SourceScan) for scan in self.plan.scans.values())

    def due_rows(self) -> dict[int, int]:
        """Return the buckets in which rows enter or leave by the clock, with the rows of the runs to read for that."""
        due: dict[int, int] = {}
        for step in self.plan.steps():
            if isinstance(step, Current) and not step.whole:
                since, now = self.clock.emitted_up_to.get(step.pending.id, LEAST), self.clock.now
                for bucket, spine in enumerate(self.before.get(step.pending.id, ())):
                    runs = [ref.rows for ref in spine.refs if lies_in(ref, EMIT_AT, since, now)]
                    if runs:  # the rows of a part of a file are an estimate, which may be 0
                        due[bucket] = due.get(bucket, 0) + sum(runs)
        return due

    def close_others(self) -> None:
        """Unmap runs that are no longer part of the state."""
        keep_open(self.store, {ref.name for spines in self.before.values() for spine in spines for ref in spine.refs})

    def task(self, bucket: int) -> Task:
        """Return a new task for a bucket."""
        parts = {name: spines[bucket] for name, spines in self.before.items()}
        setting = self.setting
        return Task(
            self.store,
            self.epoch,
            bucket,
            setting.buckets,
            parts,
            setting.history,
            setting.max_pairs,
            self.clock,
            expiry=setting.expiry,
        )

    def to_text(self) -> str:
        """Serialize the fields that change from epoch to epoch, for the tasks."""
        before = {name: [spine.to_json() for spine in parts] for name, parts in self.before.items()}
        clock = asdict(self.clock)
        return json.dumps({"epoch": self.epoch, "before": before, "clock": clock}, separators=(",", ":"))

    @classmethod
    def from_text(cls, setting: Setting, text: str) -> EpochWork:
        """Read what `to_text` returned."""
        data = json.loads(text)
        before = {name: tuple(Spine.from_json(spine) for spine in parts) for name, parts in data["before"].items()}
        return cls(setting, data["epoch"], before, Clock(**data["clock"]))


@dataclass(frozen=True)
class ScanRound:
    """Round 0: each row of the input names a split of a source; its chunks run through the steps one by one."""

    work: EpochWork

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Read splits and yield exchange rows."""
        with limited_memory(f"a task of epoch {self.work.epoch} that reads sources"):
            yield from self._read(batches)

    def _read(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        self.work.close_others()
        report, is_capped = Report(), self.work.is_capped
        for batch in batches:
            for split in splits_in(batch):
                source = self.work.plan.scans.get(split.scan)
                if source is None:  # dropped since the query started
                    continue
                expiry, now = self.work.setting.expiry, self.work.clock.now
                nulls = NullColumns.of(source, split)
                opened = partial(_report_signature, report, source, split)
                late = partial(self._has_late_rows, source.stream)
                for stream, table in scan(self.work.store, source, split, self.work.before, expiry, now, opened, late):
                    task = self.work.task(0)
                    task.streams[stream] = without(table, [PARTITION])
                    run_steps(task, self.work.plan.rounds[0])
                    report.count_read(split.scan, table)
                    if is_capped:
                        check_intake(report, self.work.epoch, f"in {_place(split)}")
                    for partition, times in largest_times(source, stream, table):
                        report.observe(split.scan, partition, times)
                    report.add(task.report.to_json())
                    nulls.see(stream, table)
                    yield from exchange_rows(task, self.work.setting.spool)
                if isinstance(split, FileSplit | RecordsSplit):
                    nulls.report_to(report)
                    report.newest[split.scan] = max(report.newest.get(split.scan, 0), split.time)
                reach("scan", self.work.epoch)
        if report.rows_in or report.emitted or report.signatures:
            yield exchange_batch([(0, REPORT, json.dumps(report.to_json()).encode())])
        # A bucket without exchange rows runs no steps, so those with rows that enter or leave get an empty report.
        due = self.work.due_rows()
        if due:
            nothing = json.dumps(Report().to_json()).encode()
            yield exchange_batch([(bucket, REPORT, nothing) for bucket in sorted(due)])

    def _has_late_rows(self, stream: str, rows: pa.Table) -> bool:
        """Whether rows of a source are late for some view, which takes them with all their columns."""
        steps = (step for step in self.work.plan.rounds[0] if isinstance(step, OnTime) and step.input == stream)
        return any(has_late_rows(rows, step, self.work.clock) for step in steps)


def _report_signature(report: Report, source: Scan, split: Split, signature: str) -> None:
    """Report the signature of a file that a later hydration may read again."""
    if isinstance(source, SourceScan) and source_side(source.source).rereads_files and isinstance(split, FileSplit):
        report.signatures[split.path] = signature


def _place(split: Split) -> str:
    match split:
        case FileSplit():
            return split.path
        case RecordsSplit():
            return split.topic
        case RowsSplit() | StateSplit():
            return "a batch of rows"


@dataclass(frozen=True)
class BucketRound:
    """Round 1 and up: gather the deltas of a bucket, run the steps, send deltas to later rounds, report."""

    work: EpochWork
    number: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Process the exchange rows of one or more buckets and yield those for the next round."""
        with limited_memory(f"a task of epoch {self.work.epoch} in round {self.number}"):
            yield from self._run(batches)

    def _run(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        if self.number == 1:
            self.work.close_others()
        for bucket, rows in sorted(by_bucket(batches).items()):
            task = self.work.task(bucket)
            forwarded = self.gather(task, rows)
            if self.number == 1 and self.work.is_capped:
                check_intake(task.report, self.work.epoch, "over all tasks")  # the reports of all scans meet here
            run_steps(task, self.work.plan.rounds[self.number])
            insert_runs(task)
            if self.number == len(self.work.plan.rounds) - 1:
                insert_changelog_runs(task)
            reach("round", self.work.epoch)
            yield from exchange_rows(task, self.work.setting.spool)
            forwarded.append((bucket, REPORT, json.dumps(task.report.to_json()).encode()))
            yield exchange_batch(forwarded)

    def gather(self, task: Task, rows: list[tuple[int, pa.Buffer]]) -> list[tuple[int, int, Any]]:
        """Decode the payloads for this round into streams; return the exchange rows for later rounds."""
        channels = self.work.plan.channels
        parts: dict[int, list[pa.Table]] = {}
        forwarded: list[tuple[int, int, Any]] = []
        for channel, payload in rows:
            if channel == REPORT:
                task.report.add(json.loads(payload.to_pybytes()))
            elif channels[channel].round > self.number:
                forwarded.append((task.bucket, channel, payload.to_pybytes()))
            else:
                table = read_spooled(payload) if is_reference(payload) else decode(payload)
                parts.setdefault(channel, []).append(table)
        for channel, tables in parts.items():
            task.streams[channels[channel].stream] = sorted_by_hash(contiguous(tables))
        return forwarded


def run_steps(task: Task, steps: Iterable[Step]) -> None:
    """Run the steps in the order of the plan."""
    for step in steps:
        STEP_FUNCTIONS[type(step)](task, step)


def by_bucket(batches: Batches) -> dict[int, list[tuple[int, pa.Buffer]]]:
    """Return exchange rows by bucket, in their order."""
    result: dict[int, list[tuple[int, pa.Buffer]]] = {}
    for batch in batches:
        buckets, channels = batch.column(0).to_pylist(), batch.column(1).to_pylist()
        for bucket, channel, payload in zip(buckets, channels, batch.column(2), strict=True):
            result.setdefault(bucket, []).append((channel, payload.as_buffer()))
    return result


def exchange_rows(task: Task, spool: Spool | None) -> Iterator[pa.RecordBatch]:
    """Yield the outbox of a task as exchange rows: large outboxes through the spool, if any; else in pieces."""
    outbox, task.outbox = task.outbox, []
    if not outbox:
        return
    tables = {id(table): table for _, _, table in outbox}  # a table for all buckets is written once
    if spool is not None and sum(table.nbytes for table in tables.values()) > INLINE_BYTES:
        written = spool.write(task.epoch, [drop_unit_diffs(table) for table in tables.values()])
        references = dict(zip(tables, written, strict=True))
        yield exchange_batch([(bucket, channel, references[id(table)]) for bucket, channel, table in outbox])
        return
    payloads: dict[int, list[bytes]] = {}
    for number, table in tables.items():
        pieces = max(1, -(-table.nbytes // PAYLOAD_BYTES))
        size = -(-table.num_rows // pieces)
        payloads[number] = [encode(table.slice(start, size)) for start in range(0, table.num_rows, size)]
    yield exchange_batch([(b, c, payload) for b, c, table in outbox for payload in payloads[id(table)]])


def exchange_batch(rows: list[tuple[int, int, Any]]) -> pa.RecordBatch:
    """Return a batch of the exchange schema."""
    buckets, channels, payloads = zip(*rows, strict=True)
    arrays = [pa.array(buckets, pa.int32()), pa.array(channels, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=EXCHANGE)

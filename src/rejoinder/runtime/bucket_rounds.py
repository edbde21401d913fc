"""The rounds of an epoch as functions from exchange batches to exchange batches: the same on Spark and in process.

Every exchange row is `bucket int, channel int, payload binary`. The channel says what the payload is: the delta of a
channel of the plan, or (`REPORT`) what earlier rounds of this bucket tell the driver. What is meant for a later round
is passed on untouched, to the same bucket.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from rejoinder.faults import reach
from rejoinder.host.caps import Caps, caps
from rejoinder.host.memory import limited_memory
from rejoinder.ir.allowed_functions import refuse_others
from rejoinder.kernels.arrow.columns import PARTITION, contiguous, drop_unit_diffs, without
from rejoinder.kernels.arrow.scatter import decode, encode, sorted_by_hash
from rejoinder.plan.physical.dataflow import Dataflow, Scan, SourceScan
from rejoinder.plan.physical.steps import Step
from rejoinder.runtime.epoch_caps import check_intake
from rejoinder.runtime.null_columns import NullColumns
from rejoinder.runtime.scan import Split, largest_times, scan
from rejoinder.runtime.steps.arrange import settle
from rejoinder.runtime.steps.emit import settle_changelogs
from rejoinder.runtime.steps.registry import STEP_FUNCTIONS
from rejoinder.runtime.task import MAX_PAIRS, Clock, Report, Task
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.run import keep_open
from rejoinder.store.runs.spine import Spine
from rejoinder.store.runs.spool import INLINE_BYTES, Spool, is_reference, read_spooled

REPORT = -1
PAYLOAD_BYTES = 16 << 20
EXCHANGE = pa.schema([("bucket", pa.int32()), ("channel", pa.int32()), ("payload", pa.binary())])

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Setting:
    """What does not change from epoch to epoch. `expiry`: what readers leave out, when something new is filled.

    `fills` says that rows of earlier epochs are read, to fill something new: caps of an epoch do not count.
    """

    plan: Dataflow
    store: ObjectStore
    buckets: int
    history: int
    spool: Spool | None = None
    max_pairs: int = MAX_PAIRS
    expiry: Mapping[str, Expiry] = field(default_factory=dict)
    caps: Caps = field(default_factory=caps)
    writer: str = ""
    """The identity of the driver (`engine.publisher`)."""
    fills: bool = False

    def __post_init__(self) -> None:
        """Refuse functions that this process did not allow: no task runs without a setting."""
        refuse_others(self.plan.functions)


@dataclass(frozen=True)
class EpochWork:
    """What every task of an epoch knows: the setting, and the state before the epoch."""

    setting: Setting
    epoch: int
    before: dict[str, tuple[Spine, ...]] = field(repr=False)
    clock: Clock = field(default_factory=Clock)

    @property
    def plan(self) -> Dataflow:
        """The rounds and their steps."""
        return self.setting.plan

    @property
    def store(self) -> ObjectStore:
        """Where the runs are."""
        return self.setting.store

    @property
    def is_capped(self) -> bool:
        """Whether what is read is the input of an epoch."""
        return not self.setting.fills and any(isinstance(scan, SourceScan) for scan in self.plan.scans.values())

    def close_others(self) -> None:
        """Let go of runs that are no part of the state any more."""
        keep_open(self.store, {ref.name for spines in self.before.values() for spine in spines for ref in spine.refs})

    def task(self, bucket: int) -> Task:
        """The working memory of one bucket."""
        parts = {name: spines[bucket] for name, spines in self.before.items()}
        known = self.setting
        return Task(
            self.store,
            self.epoch,
            bucket,
            known.buckets,
            parts,
            known.history,
            known.max_pairs,
            self.clock,
            expiry=known.expiry,
        )

    def to_text(self) -> str:
        """Write down what changes from epoch to epoch, for the tasks."""
        before = {name: [spine.to_json() for spine in parts] for name, parts in self.before.items()}
        clock = asdict(self.clock)
        return json.dumps({"epoch": self.epoch, "before": before, "clock": clock}, separators=(",", ":"))

    @classmethod
    def from_text(cls, setting: Setting, text: str) -> EpochWork:
        """Read what `to_text` wrote."""
        data = json.loads(text)
        before = {name: tuple(Spine.from_json(spine) for spine in parts) for name, parts in data["before"].items()}
        return cls(setting, data["epoch"], before, Clock(**data["clock"]))


@dataclass(frozen=True)
class ScanRound:
    """Round 0: each row of the input names a split of a source, which runs through the steps chunk by chunk."""

    work: EpochWork

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Read splits, yield exchange rows."""
        with limited_memory(f"a task of epoch {self.work.epoch} that reads sources"):
            yield from self._read(batches)

    def _read(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        self.work.close_others()
        report, is_capped = Report(), self.work.is_capped
        for batch in batches:
            for split in Split.from_batch(batch):
                source = self.work.plan.scans.get(split.source)
                if source is None:  # dropped since the query was started
                    continue
                expiry, now = self.work.setting.expiry, self.work.clock.now
                nulls = NullColumns.of(source, split)
                opened = partial(_note_signature, report, source, split)
                for stream, table in scan(self.work.store, source, split, self.work.before, expiry, now, opened):
                    task = self.work.task(0)
                    task.streams[stream] = without(table, [PARTITION])
                    run_steps(task, self.work.plan.rounds[0])
                    report.count_read(split.source, table)
                    if is_capped:
                        check_intake(report, self.work.epoch, f"in {split.path or 'a batch of rows'}")
                    for partition, times in largest_times(source, stream, table):
                        report.observe(split.source, partition, times)
                    report.add(task.report.to_json())
                    nulls.see(stream, table)
                    yield from exchange_rows(task, self.work.setting.spool)
                if split.path:
                    nulls.report_to(report)
                    report.newest[split.source] = max(report.newest.get(split.source, 0), split.modified)
                reach("scan", self.work.epoch)
        if report.rows_in or report.emitted or report.signatures:
            yield exchange_batch([(0, REPORT, json.dumps(report.to_json()).encode())])


def _note_signature(report: Report, source: Scan, split: Split, signature: str) -> None:
    """Report the signature of a file, if it may be read again."""
    if isinstance(source, SourceScan) and source.source.is_file and split.path is not None:
        report.signatures[split.path] = signature


@dataclass(frozen=True)
class BucketRound:
    """Round 1 and up: gather the bucket's deltas, run the steps, send on, report."""

    work: EpochWork
    number: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Take the exchange rows of one or more buckets, yield those of the next round."""
        with limited_memory(f"a task of epoch {self.work.epoch} in round {self.number}"):
            yield from self._computed(batches)

    def _computed(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        if self.number == 1:
            self.work.close_others()
        for bucket, rows in sorted(by_bucket(batches).items()):
            task = self.work.task(bucket)
            forwarded = self.gather(task, rows)
            if self.number == 1 and self.work.is_capped:
                check_intake(task.report, self.work.epoch, "over all tasks")
            run_steps(task, self.work.plan.rounds[self.number])
            settle(task)
            if self.number == len(self.work.plan.rounds) - 1:
                settle_changelogs(task)
            reach("round", self.work.epoch)
            yield from exchange_rows(task, self.work.setting.spool)
            forwarded.append((bucket, REPORT, json.dumps(task.report.to_json()).encode()))
            yield exchange_batch(forwarded)

    def gather(self, task: Task, rows: list[tuple[int, pa.Buffer]]) -> list[tuple[int, int, Any]]:
        """Decode this round's channels into streams; give back what is meant for later rounds."""
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
    """Sort exchange rows by bucket, keeping their order."""
    result: dict[int, list[tuple[int, pa.Buffer]]] = {}
    for batch in batches:
        buckets, channels = batch.column(0).to_pylist(), batch.column(1).to_pylist()
        for bucket, channel, payload in zip(buckets, channels, batch.column(2), strict=True):
            result.setdefault(bucket, []).append((channel, payload.as_buffer()))
    return result


def exchange_rows(task: Task, spool: Spool | None) -> Iterator[pa.RecordBatch]:
    """Encode a task's outbox: through the spool if there is one and it is worth it; else large deltas in pieces."""
    outbox, task.outbox = task.outbox, []
    if not outbox:
        return
    tables = {id(table): table for _, _, table in outbox}  # what goes to all buckets is written once
    if spool is not None and sum(table.nbytes for table in tables.values()) > INLINE_BYTES:
        written = spool.write(task.epoch, [drop_unit_diffs(table) for table in tables.values()])
        references = dict(zip(tables, written, strict=True))
        yield exchange_batch([(bucket, channel, references[id(table)]) for bucket, channel, table in outbox])
        return
    payloads: dict[int, list[bytes]] = {}
    for number, table in tables.items():
        pieces = max(1, -(-table.nbytes // PAYLOAD_BYTES))
        size = -(-table.num_rows // pieces)
        payloads[number] = [encode(table.slice(at, size)) for at in range(0, table.num_rows, size)]
    yield exchange_batch([(b, c, payload) for b, c, table in outbox for payload in payloads[id(table)]])


def exchange_batch(rows: list[tuple[int, int, Any]]) -> pa.RecordBatch:
    """Make a batch of the exchange schema."""
    buckets, channels, payloads = zip(*rows, strict=True)
    arrays = [pa.array(buckets, pa.int32()), pa.array(channels, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=EXCHANGE)

"""The engine: definitions, state and epochs of one flow. Spark and the test driver both drive this class.

An epoch (`run_epoch`) runs its rounds on the executor, builds the new state from their reports, publishes the manifest,
and collects old files. The manifest is the commit: an epoch without one has no effect. An epoch that is committed
already is skipped.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from rejoinder.engine.collector import KEEP_VERSIONS, Collector
from rejoinder.engine.epoch import attempt
from rejoinder.engine.epoch_progress import Progress, entry_of, lag_of, log_progress, shown_rows
from rejoinder.engine.hydration.edits import NO_EDITS, Edits
from rejoinder.engine.hydration.redefinition import adopted, reordered
from rejoinder.engine.hydration.source_replay import SourceReplay, Topics
from rejoinder.engine.maintenance.state_deletion import deletion_named, refuse_deleted
from rejoinder.engine.maintenance.state_format import format_named
from rejoinder.engine.notices import Notices
from rejoinder.engine.publisher import Publisher
from rejoinder.engine.state_quota import NO_QUOTA, StateQuota, check_count
from rejoinder.engine.tick_times import may_tick, next_due
from rejoinder.engine.time.explicit_watermarks import PendingWatermark, PendingWatermarks
from rejoinder.engine.time.processing_time import ProcessingTime, Reading, steady_clock, system_clock
from rejoinder.engine.version import Version, fingerprint
from rejoinder.errors import Corrupt
from rejoinder.faults import reach
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.streams import Generation, StreamId
from rejoinder.plan.physical.dataflow import Dataflow
from rejoinder.planner import plan
from rejoinder.runtime.bucket_rounds import EpochWork, Setting
from rejoinder.runtime.task import MAX_PAIRS, Clock, Report
from rejoinder.state.epoch_log import Part
from rejoinder.state.executor import Executor
from rejoinder.state.flow_state import State
from rejoinder.state.positions import Positions
from rejoinder.state.watermarks import Partition, Signals
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.commits.newest_manifest import newest
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.spool import Spool

HISTORY = 10_000
PROGRESS_KEPT = 10_000
SILENT = Signals()


class Engine:
    """A flow on a store. Methods that change the flow hold `lock`, so an epoch and a definition never overlap."""

    version: Version
    """The committed state. It is replaced as a whole, so it can be read without the lock."""

    def __init__(
        self,
        store: ObjectStore,
        executor: Executor,
        *,
        buckets: int,
        history: int = HISTORY,
        max_pairs: int = MAX_PAIRS,
        quota: StateQuota = NO_QUOTA,
        spool: Spool | None = None,
        clock: Callable[[], int] = system_clock,
    ) -> None:
        check_count("parallelism", buckets)
        check_count("max_pairs", max_pairs)
        self.store = store
        self.executor = executor
        self.buckets = buckets
        self.history = max(1, history)  # sinks read the changes of the last epoch after its commit
        self.spool = spool
        self.max_pairs = max_pairs
        self.quota = quota
        self.lock = threading.RLock()
        self.progress: deque[Progress] = deque(maxlen=PROGRESS_KEPT)
        self.unlogged: dict[Part, float] = {}  # seconds of the last epoch that the next commit logs
        self.publisher = Publisher(store)
        self.clock = clock
        self.collector = Collector()
        self.started: int | None = None  # processing time from which on a silent source may become idle
        self._idle: dict[str, set[Partition]] = {}
        self.pending_watermarks = PendingWatermarks()
        self.topics: Topics | None = None  # reads records of topics again
        self._notices = Notices()
        self.recover()

    @property
    def clock(self) -> Callable[[], int]:
        """The system clock in milliseconds since 1970. A steady clock is used with it only if it is the machine's."""
        return self.time.clock

    @clock.setter
    def clock(self, clock: Callable[[], int]) -> None:
        self.time = ProcessingTime(clock, steady_clock if clock is system_clock else None, self.store.time_ms)

    def recover(self) -> None:
        """Load the last committed state. Raises `StateError` if it cannot be read."""
        with format_named(self):
            self._recover()

    def _recover(self) -> None:
        manifest = newest(self.store)
        version = Version.read(self.store, manifest, self.buckets, plan)
        self.version = replace(version, watermarks=version.watermarks.with_persisted(version.plan.persisted))
        if manifest is not None:
            self.time.wall = manifest.extra.get("clock")

    def replan(self) -> None:
        """Plan again if the statistics have changed much, and hydrate arrangements that a newer planner needs."""
        with self.lock:
            self.publisher.settle()
            self.version = reordered(self.version)
            self.started = None
            manifest = self.version.manifest
            if manifest is not None and manifest.plan != fingerprint(self.dataflow):
                self.define(self.version.catalog)

    @property
    def epoch(self) -> int:
        """The last committed epoch; −1 before the first."""
        return self.version.epoch

    @property
    def dataflow(self) -> Dataflow:
        """The rounds of the next epoch."""
        return self.version.dataflow

    # -- epochs -----------------------------------------------------------------------------------------------------

    def run_epoch(
        self,
        epoch: int,
        splits: object,
        *,
        time_ms: int | None = None,
        positions: Positions | Callable[[Mapping[str, str]], Positions] | None = None,
        signals: Signals = SILENT,
    ) -> Progress | None:
        """Run and commit an epoch. Returns None, without effect, if it is the last committed one.

        `positions` are the positions of the sources after the epoch (`state.positions`). A function is called after
        the tasks, with the signatures of the files that they read. `signals` are idle marks and explicit watermarks.
        Raises `Corrupt` if `epoch` does not follow the last committed one.
        """
        with self.lock, deletion_named(self):
            self.publisher.settle()
            if epoch == self.epoch:
                return None
            if epoch != self.epoch + 1:
                raise Corrupt(
                    f"the sources are at epoch {epoch}, and the state is at epoch {self.epoch}",
                    detail="the positions of the sources and the committed state do not belong together",
                    hint="start the flow again: the sources are read from the last committed epoch on",
                )
            start = time.perf_counter()
            signals = signals.with_idle(self._idle)
            self.version.watermarks.check(self.version.plan.program.sources, signals)
            reach("before_tasks", epoch)
            reading = self.time.read(self.version.timeline.latest, time_ms)
            self._silence_start(reading.now)
            done = attempt(self, self.version, epoch, splits, signals, reading.now)
            version, totals = done.version, done.totals
            if positions is not None:
                new_positions = positions(totals.signatures) if callable(positions) else positions
                version = replace(version, positions=new_positions)
            running = time.perf_counter() - start
            log = self.version.log.with_parts(self.unlogged).after(entry_of(self, epoch, reading.now, done, running))
            version = replace(version, log=log)
            self._commit(version, epoch=epoch, reading=reading, accepted=lambda: self._accept(reading, signals, totals))
            reach("after_commit", epoch)
            self.collector.collect(self)
            reach("after_collection", epoch)
            self.log_part("commit", time.perf_counter() - start - running)
            return self._record_progress(epoch, time.perf_counter() - start, totals, done.written)

    def _accept(self, reading: Reading, signals: Signals, totals: Report) -> None:
        """Record that an epoch is committed: advance processing time, and remove the signals that it applied."""
        self.time.accept(reading)
        self._idle, self.unlogged = {}, {}
        self.pending_watermarks.remove_applied(signals.explicit)
        self.pending_watermarks.mark_read_up_to(totals.newest)

    def log_part(self, part: Part, seconds: float) -> None:
        """Add seconds to a part of the last epoch. Only the clock of the machine counts: a simulation has none."""
        if self.clock is system_clock:
            self.unlogged[part] = self.unlogged.get(part, 0) + seconds

    def mark_idle(self, source: Source, partition: Partition | None, known: Iterable[Partition] = ()) -> None:
        """Mark a partition as idle from the next epoch on; None means all known ones. Raises `MissingInput`.

        `known` are partitions that the source itself lists.
        """
        with self.lock:
            all_partitions = [*self.version.watermarks.partitions_of(source), *known] or [0]
            partitions = [partition] if partition is not None else all_partitions
            self.version.watermarks.check_partitions(source, partitions, known)
            self._idle.setdefault(source.name, set()).update(partitions)

    def add_watermark(
        self,
        source: Source,
        column: str,
        value: int,
        partition: Partition | None,
        known: Iterable[Partition] = (),
        *,
        is_running: bool,
        newest: int | None = None,
    ) -> None:
        """Add an explicit watermark of a partition; None means all known ones. No row below `value` may follow.

        A later epoch applies it, once the caller finds it due (`PendingWatermarks.due`). `known` are partitions that
        the source itself lists. `is_running`: the next epoch may be planned already. `newest`: the newest file of the
        source, if files are read in order. Raises `WatermarkRegress` if the watermark does not rise.
        """
        with self.lock:
            partitions = self.version.watermarks.explicit_partitions(source, partition, known)
            for name in partitions:
                last = self.pending_watermarks.last(source.name, name, column)
                self.version.watermarks.check_rise(source, name, column, value, last)
            planned = self.epoch + (2 if is_running else 1)
            self.pending_watermarks.entries += [
                PendingWatermark(source.name, name, column, value, planned, newest) for name in partitions
            ]

    @property
    def is_ticking(self) -> bool:
        """Whether an epoch without input may be necessary, because of the clock or of pending signals."""
        return self.has_pending_signals or may_tick(self.version.plan.program)

    @property
    def has_pending_signals(self) -> bool:
        """Whether idle marks or explicit watermarks wait for an epoch."""
        return bool(self._idle or self.pending_watermarks.entries)

    def seconds_to_tick(self) -> float | None:
        """Return the seconds until an epoch without input has something to do: 0 if it has now, None if never.

        It emits changes that are due by the clock, marks silent partitions idle, or applies pending signals.
        """
        with self.lock:
            if self.has_pending_signals:
                return 0
            now = self.time.now(self.version.timeline.latest)
            due = next_due(self.version, self._silence_start(now))
            return None if due is None else max(0, due - now) / 1000

    def _silence_start(self, now: int) -> int:
        """Return the time from which on silence counts, `now` at the latest; a failed attempt may have set more."""
        self.started = now if self.started is None else min(now, self.started)
        return self.started

    def work(self, epoch: int, dataflow: Dataflow, state: State, clock: Clock) -> EpochWork:
        """Return the work of the tasks of one epoch."""
        return EpochWork(self.setting(dataflow), epoch, state.parts, clock)

    def setting(self, dataflow: Dataflow | None = None) -> Setting:
        """Return the setting of tasks, which stays the same until the next definition."""
        plan, writer = dataflow or self.dataflow, self.publisher.writer
        return Setting(plan, self.store, self.buckets, self.history, self.spool, self.max_pairs, writer=writer)

    def _record_progress(self, epoch: int, seconds: float, totals: Report, written: int) -> Progress:
        size = sum(part.bytes for parts in self.version.state.arrangements.values() for part in parts)
        general = [notice for notice in (self.time.notice, self.collector.notice) if notice is not None]
        notices = (*general, *self._notices.about(totals.null_columns))
        rows_out, lag = shown_rows(totals, self.dataflow.source_changes), lag_of(totals, self.clock())
        progress = Progress(epoch, seconds, totals.rows_in, rows_out, written, size, lag, totals.late, notices)
        self.progress.append(progress)
        return log_progress(progress)

    # -- definitions ------------------------------------------------------------------------------------------------

    def define(
        self,
        catalog: Catalog,
        edits: Edits = NO_EDITS,
        *,
        time_ms: int | None = None,
    ) -> None:
        """Adopt a new catalog at an epoch boundary: hydrate new views, drop unused state, commit.

        If views are replaced, the commit is the next epoch, with the difference of their content. It reads no input.
        `edits` say what happens to the state before that. `time_ms` is the time of the commit; None means now. Raises
        `Incomplete` if a new view needs rows that have expired.
        """
        with self.lock, deletion_named(self):
            self.publisher.settle()
            before = edits.base(self.version)
            version, epoch = adopted(self, before, catalog)
            retained = partial(self._retain_signals, edits.kept or self.version.catalog)
            self._commit(version, before=before, epoch=epoch, time_ms=time_ms, accepted=retained)
            reach("after_definition", self.epoch)
            self.collector.collect(self)

    def _retain_signals(self, kept: Catalog) -> None:
        """Remove the pending signals of dropped sources, also of those that were created again by the same name."""
        names = {source.name for source in kept.sources} & {source.name for source in self.version.catalog.sources}
        self.pending_watermarks.retain_sources(names)
        self._idle = {name: partitions for name, partitions in self._idle.items() if name in names}

    def begin_generation(
        self,
        generation: Generation,
        starts: Mapping[StreamId, Mapping[str, str]],
        offsets: Mapping[StreamId, str],
        *,
        commit: bool,
    ) -> None:
        """Adopt a new generation of Spark's checkpoint; without `commit`, the next epoch commits it."""
        with self.lock:
            self.publisher.settle()
            positions = self.version.positions.with_generation(generation, starts, offsets)
            version = replace(self.version, positions=positions)
            if commit:
                self._commit(version, epoch=self.epoch)
            else:
                self.version = version

    def file_lines(self, stream: StreamId) -> tuple[list[bytes], int]:
        """Return the files that a stream has read, as lines of Spark's log and the number read in the last epoch."""
        files = self.version.positions.of(stream).files
        with deletion_named(self):
            return files.lines(self.store), files.last

    def check_fence(self) -> None:
        """Raise `Fenced` if another driver has committed to this state after our last commit."""
        with self.lock, deletion_named(self):
            self.publisher.settle()
            if self.version.manifest is not None:
                self.publisher.check_fence(self.version.manifest)

    def check_present(self) -> None:
        """Raise `StateDeleted` if the state was deleted while this engine uses it. Lists the manifests."""
        refuse_deleted(self)

    def claim(self) -> bool:
        """Become the only driver of this state. Returns whether that took a commit. Raises `Fenced`."""
        with self.lock:
            self.check_fence()
            manifest = self.version.manifest
            if manifest is None or manifest.writer == self.publisher.writer:
                return False
            self._commit(self.version, epoch=self.epoch)
            return True

    def replay(self, version: Version | None = None) -> SourceReplay:
        """Return what reads the sources of a version again; None means the committed one."""
        base = version or self.version
        return SourceReplay(self.store, base.positions, base.attached, self.topics)

    # -- commit -----------------------------------------------------------------------------------------------------

    def _commit(
        self,
        version: Version,
        *,
        epoch: int,
        before: Version | None = None,
        reading: Reading | None = None,
        time_ms: int | None = None,
        accepted: Callable[[], None] = lambda: None,
    ) -> None:
        """Publish a manifest, then adopt the new version and call `accepted`. Epochs that read input have a `reading`.

        Any other epoch does not advance processing time: what is due by the clock is emitted by the next one. `before`
        is the version that this one builds on, with the identities of sources and sinks; None means the committed one.
        """
        timeline = self.version.timeline
        now = time_ms if time_ms is not None else self.time.now(timeline.latest) if reading is None else reading.now
        if epoch > self.epoch:
            clock = timeline.latest if reading is None else now
            timeline = timeline.after(self.store, epoch, now, epoch - self.history, clock)
            version = replace(version, timeline=timeline)
        version = version.settled(before or self.version, epoch, now)
        fields = version.to_json(since=epoch - self.history, wall=self.time.wall if reading is None else reading.wall)
        fields |= {"writer": self.publisher.writer, "epoch": epoch, "time_ms": now}
        last = self.version.manifest
        manifest = Manifest.first(**fields) if last is None else last.successor(keep_versions=KEEP_VERSIONS, **fields)

        def accept() -> None:
            self.version = replace(version, manifest=manifest)
            accepted()

        self.publisher.publish(manifest, accept)

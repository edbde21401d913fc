"""The engine: one flow's definitions, state and epochs. Spark and the test driver both drive this class.

Life of an epoch (`run_epoch`): known already? → rounds on the executor → new state from the reports → manifest →
collection of old files. The manifest is the commit: before it nothing has happened, after it everything has.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from rejoinder.engine.collector import KEEP_VERSIONS, Collector
from rejoinder.engine.content import Content, Holder, fingerprint
from rejoinder.engine.epoch import attempt
from rejoinder.engine.epoch_progress import Progress, lag_of, shown_rows
from rejoinder.engine.executors.executor import Executor
from rejoinder.engine.hydration.fill import Filling
from rejoinder.engine.hydration.redefinition import redefined
from rejoinder.engine.hydration.removal import reduced
from rejoinder.engine.hydration.source_replay import READ_BY_SPARK, Topics, delivered_files, unreadable
from rejoinder.engine.maintenance.state_deletion import deletion_named, refuse_deleted
from rejoinder.engine.maintenance.state_format import format_named
from rejoinder.engine.notices import Notices
from rejoinder.engine.publisher import Publisher
from rejoinder.engine.state_quota import NO_QUOTA, StateQuota, check_count
from rejoinder.engine.tick_times import may_tick, next_due
from rejoinder.engine.time.explicit_watermarks import PendingWatermark, PendingWatermarks
from rejoinder.engine.time.processing_time import ProcessingTime, Reading, steady_clock, system_clock
from rejoinder.errors import Corrupt
from rejoinder.faults import reach
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.plan.physical.dataflow import Dataflow
from rejoinder.planner import plan
from rejoinder.runtime.bucket_rounds import EpochWork, Setting
from rejoinder.runtime.task import MAX_PAIRS, Clock, Report
from rejoinder.state.completeness import covers
from rejoinder.state.flow_state import Listed, State
from rejoinder.state.positions import Position, position_of
from rejoinder.state.watermarks import Partition, Signals, Times
from rejoinder.store.commits.file_log import FileRead
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.commits.newest_manifest import newest
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.spool import Spool

HISTORY = 10_000
PROGRESS_KEPT = 10_000
SILENT = Signals()


class Engine(Holder):
    """A flow on a store. All methods that change something hold `lock`: an epoch and a definition never overlap.

    `attached` gives each source that is read an identity for as long as something needs it: what is kept of a source
    and how far it was read belong together, and are forgotten together. `sinks` gives each sink an identity for as long
    as it is defined, with the epoch in which it was; `delivered` says by identity how far it is.
    """

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
        self.history = max(1, history)  # the last epoch's changes must be readable after it
        self.spool = spool
        self.max_pairs = max_pairs
        self.quota = quota
        self.lock = threading.RLock()
        self.progress: deque[Progress] = deque(maxlen=PROGRESS_KEPT)
        self.publisher = Publisher(store)
        self.clock = clock
        self.collector = Collector()
        self.started: int | None = None  # on the clock, when silence began to count
        self._idle: dict[str, set[Partition]] = {}
        self.pending_watermarks = PendingWatermarks()
        self.topics: Topics | None = None  # who reads records of topics again
        self._notices = Notices()
        self.recover()

    @property
    def clock(self) -> Callable[[], int]:
        """Milliseconds since 1970. Where it is not the clock of the machine, that cannot tell what has elapsed."""
        return self.time.clock

    @clock.setter
    def clock(self, clock: Callable[[], int]) -> None:
        self.time = ProcessingTime(clock, steady_clock if clock is system_clock else None, self.store.time_ms)

    def recover(self) -> None:
        """Take up the last committed state."""
        with format_named(self):
            self._recover()

    def _recover(self) -> None:
        manifest = newest(self.store)
        content = Content.read(self.store, manifest, self.buckets, plan)
        self.manifest = manifest  # not before its content is read: the two belong together
        self.take_over(content)
        if self.manifest is not None:
            self.time.wall = self.manifest.extra.get("clock")
        self._reorder()
        self.watermarks = self.watermarks.with_persisted(self.plan.persisted)

    def replan(self) -> None:
        """Order the paths by the statistics of today; fill what a newer planner wants and the state does not have."""
        with self.lock:
            self.publisher.settle()
            self._reorder()
            self.started = None
            if self.manifest is not None and self.manifest.plan != fingerprint(self.dataflow):
                self.define(self.catalog)

    def _reorder(self) -> None:
        """Plan with the statistics of today, if the arrangements that are there hold all that this plan needs."""
        new = plan(self.catalog, self.state.statistics())
        before, after, times = self.dataflow, new.dataflow, self.times
        same = {a.id for a in after.arrangements} == {a.id for a in before.arrangements}
        if same and all(
            covers(before.retentions.get(a.id), times, after.retentions.get(a.id), times) for a in after.arrangements
        ):
            self.plan = new

    @property
    def fed(self) -> set[str]:
        """The sources that have committed rows."""
        return set(self.deliveries.last)

    @property
    def times(self) -> Times:
        """The watermarks, and what is persisted with them."""
        return self.watermarks.times

    @property
    def epoch(self) -> int:
        """The last committed epoch; −1 before the first."""
        return -1 if self.manifest is None else self.manifest.epoch

    @property
    def dataflow(self) -> Dataflow:
        """The rounds of the next epoch."""
        return self.plan.dataflow

    # -- epochs -----------------------------------------------------------------------------------------------------

    def run_epoch(
        self,
        epoch: int,
        splits: object,
        *,
        time_ms: int | None = None,
        positions: dict[str, Any] | Callable[[Mapping[str, str]], dict[str, Any]] | None = None,
        signals: Signals = SILENT,
    ) -> Progress | None:
        """Run and commit an epoch, once: None if it is the last committed one.

        `positions` says how far the sources are read after it (`state.positions`); a function is called once the
        tasks are done, with the signatures of the files that they read. `signals` are what sources say besides rows.
        """
        with self.lock, deletion_named(self):
            self.publisher.settle()
            if epoch == self.epoch:
                return None
            if epoch != self.epoch + 1:
                raise Corrupt(
                    f"the sources are at epoch {epoch}, and the state is at epoch {self.epoch}",
                    detail="what was read and what was committed do not belong together",
                    hint="start the flow again: the sources are read from the last committed epoch on",
                )
            start = time.perf_counter()
            sources = self.plan.program.sources
            signals = signals.with_idle(self._idle)
            self.watermarks.check(sources, signals)
            reach("before_tasks", epoch)
            reading = self.time.read(self.timeline.latest, time_ms)
            self._count_silence(reading.now)
            done = attempt(self, self.content, epoch, splits, signals, reading.now)
            content, totals = done.content, done.totals
            if positions is not None:
                found = positions(totals.signatures) if callable(positions) else positions
                content = replace(content, positions=found)
            self._commit(
                content, epoch=epoch, reading=reading, accepted=lambda: self._take_in(reading, signals, totals)
            )
            reach("after_commit", epoch)
            self.collector.collect(self)
            reach("after_collection", epoch)
            return self._note(epoch, time.perf_counter() - start, totals, done.written)

    def _take_in(self, reading: Reading, signals: Signals, totals: Report) -> None:
        """Go by the time of an epoch that is committed, and forget what sources had said before it."""
        self.time.accept(reading)
        self._idle = {}
        self.pending_watermarks.remove_applied(signals.explicit)
        self.pending_watermarks.mark_read_up_to(totals.newest)

    def mark_idle(self, source: Source, partition: Partition | None, known: Iterable[Partition] = ()) -> None:
        """Mark a partition as idle from the next epoch on; None means all known ones. Raises `MissingInput`.

        `known` are partitions that the source itself lists.
        """
        with self.lock:
            all_partitions = [*self.watermarks.partitions_of(source), *known] or [0]
            partitions = [partition] if partition is not None else all_partitions
            self.watermarks.check_partitions(source, partitions, known)
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
            partitions = self.watermarks.explicit_partitions(source, partition, known)
            for name in partitions:
                last = self.pending_watermarks.last(source.name, name, column)
                self.watermarks.check_rise(source, name, column, value, last)
            planned = self.epoch + (2 if is_running else 1)
            self.pending_watermarks.entries += [
                PendingWatermark(source.name, name, column, value, planned, newest) for name in partitions
            ]

    @property
    def is_ticking(self) -> bool:
        """Whether an epoch may have to come without input: because of the clock, or of what was or may be said."""
        return self.has_pending_signals or may_tick(self.plan.program)

    @property
    def has_pending_signals(self) -> bool:
        """Whether a source was said to be idle, or a watermark passed, since the last epoch."""
        return bool(self._idle or self.pending_watermarks.entries)

    def seconds_to_tick(self) -> float | None:
        """How long until an epoch without input has something to do; 0 if it has by now, None if it never will.

        Changes wait for the clock, a partition is silent for so long that it is idle, or something was said.
        """
        with self.lock:
            if self.has_pending_signals:
                return 0
            now = self.time.now(self.timeline.latest)
            due = next_due(self.content, self._count_silence(now))
            return None if due is None else max(0, due - now) / 1000

    def _count_silence(self, now: int) -> int:
        """Give the time since when silence counts: now at the latest, whatever an attempt that failed believed."""
        self.started = now if self.started is None else min(now, self.started)
        return self.started

    def work(self, dataflow: Dataflow, epoch: int, state: State, clock: Clock) -> EpochWork:
        """What tasks of one epoch do."""
        return EpochWork(self.setting(dataflow), epoch, state.parts, clock)

    def setting(self, dataflow: Dataflow | None = None) -> Setting:
        """What tasks of every epoch know, as long as nothing is defined anew."""
        plan, writer = dataflow or self.dataflow, self.publisher.writer
        return Setting(plan, self.store, self.buckets, self.history, self.spool, self.max_pairs, writer=writer)

    def _note(self, epoch: int, seconds: float, totals: Report, written: int) -> Progress:
        size = sum(part.bytes for parts in self.state.arrangements.values() for part in parts)
        general = [notice for notice in (self.time.notice, self.collector.notice) if notice is not None]
        notices = (*general, *self._notices.about(totals.null_columns))
        rows_out, lag = shown_rows(totals), lag_of(totals, self.clock())
        progress = Progress(epoch, seconds, totals.rows_in, rows_out, written, size, lag, totals.late, notices)
        self.progress.append(progress)
        return progress

    # -- definitions ------------------------------------------------------------------------------------------------

    def define(self, catalog: Catalog, *, kept: Catalog | None = None) -> None:
        """Take over a new catalog at an epoch boundary: hydrate what is new, drop what is unused, commit.

        `kept` has the definitions that stay (None: those of today). Of any other nothing is taken over, though it may
        be in the new catalog again. Raises `Incomplete` if rows that something new needs are no longer kept.
        """
        with self.lock, deletion_named(self):
            self.publisher.settle()
            before = self.content if kept is None else reduced(self.content, kept)
            staying = {source.name for source in (kept or self.catalog).sources}
            content = redefined(self, before, catalog)
            self._commit(content, before=before, epoch=self.epoch, accepted=lambda: self._forget_but(staying))
            reach("after_definition", self.epoch)
            self.collector.collect(self)

    def _forget_but(self, staying: set[str]) -> None:
        """Forget what was said of sources that were dropped, also if others of their names were created."""
        names = staying & {source.name for source in self.catalog.sources}
        self.pending_watermarks.retain_sources(names)
        self._idle = {name: partitions for name, partitions in self._idle.items() if name in names}

    def annotate(self, positions: dict[str, Any]) -> None:
        """Commit how far the sources are read, between epochs."""
        with self.lock:
            self.publisher.settle()
            self._commit(replace(self.content, positions=positions), epoch=self.epoch)

    def file_lines(self, stream: str) -> tuple[list[bytes], int]:
        """The files that a stream has read, as lines of Spark's log; how many of them came with its newest epoch."""
        files = position_of(self.positions, stream).files
        with deletion_named(self):
            return files.lines(self.store), files.last

    def check_fence(self) -> None:
        """Raise `Fenced` if another driver has committed to this state since we last did."""
        with self.lock, deletion_named(self):
            self.publisher.settle()
            if self.manifest is not None:
                self.publisher.check_fence(self.manifest)

    def check_present(self) -> None:
        """Raise `StateDeleted` if the state was deleted under us. Lists the manifests."""
        refuse_deleted(self)

    def claim(self) -> bool:
        """Make sure that we are the one driver of this state; True if it took a commit. Raises `Fenced`."""
        with self.lock:
            self.check_fence()
            if self.manifest is None or self.manifest.writer == self.publisher.writer:
                return False
            self._commit(self.content, epoch=self.epoch)
            return True

    @property
    def writer_epoch(self) -> int:
        """How many drivers this flow had before the one of the last commit."""
        return 0 if self.manifest is None else self.manifest.writer_epoch

    def unreadable(self, source: Source) -> str | None:
        """Why the rows that a source has delivered cannot be read again; None if they can. Raises `InputError`."""
        if source.format in READ_BY_SPARK and self.topics is not None:
            return self.topics.unreadable(source, self.position(source))
        return unreadable(self.store, self.positions, self.attached, source)

    def position(self, source: Source) -> Position:
        """How far the only stream of a source is read."""
        return position_of(self.positions, f"{self.attached[source.name]}/0")

    def records(self, filling: Filling) -> list[Listed]:
        """The records that a filling reads again, in this process."""
        if self.topics is None:
            return []
        found = [self.topics.collected(source, self.position(source)) for source in filling.topics]
        return [split for splits in found for split in splits]

    def reread(self, source: Source) -> list[FileRead]:
        """The files with all rows that a source has delivered."""
        return delivered_files(self.store, self.positions, self.attached, source)

    # -- commit -----------------------------------------------------------------------------------------------------

    def _commit(
        self,
        content: Content,
        *,
        epoch: int,
        before: Content | None = None,
        reading: Reading | None = None,
        accepted: Callable[[], None] = lambda: None,
    ) -> None:
        """Publish the manifest; only then take the new content over, and call `accepted`. Epochs have a `reading`.

        `before` has what the content builds on, identities of sources and sinks among it (None: what is committed).
        """
        now = self.time.now(self.timeline.latest) if reading is None else reading.now
        if epoch > self.epoch:
            timeline = self.timeline.after(self.store, epoch, now, epoch - self.history)
            content = replace(content, timeline=timeline)
        content = content.settled(before or self.content, epoch, now)
        fields = content.to_json(since=epoch - self.history, wall=self.time.wall if reading is None else reading.wall)
        fields |= {"writer": self.publisher.writer, "epoch": epoch, "time_ms": now}
        if self.manifest is None:
            manifest = Manifest.first(**fields)
        else:
            manifest = self.manifest.successor(keep_versions=KEEP_VERSIONS, **fields)

        def accept() -> None:
            self.manifest = manifest
            self.take_over(content)
            accepted()

        self.publisher.publish(manifest, accept)

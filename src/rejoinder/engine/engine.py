"""The engine: one flow's definitions, state and epochs. Spark and the test driver both drive this class.

Life of an epoch (`run_epoch`): known already? → rounds on the executor → new state from the reports → manifest →
collection of old files. The manifest is the commit: before it nothing has happened, after it everything has.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rejoinder.engine.clocks import clock_of, due_dataflow, next_tick
from rejoinder.engine.completeness import complete_sources, covers
from rejoinder.engine.decoding import checked_positions, decoding
from rejoinder.engine.deletion import deletion_named, refuse_deleted
from rejoinder.engine.deliveries import Deliveries
from rejoinder.engine.executor import Executor
from rejoinder.engine.filling import Filling, prepare
from rejoinder.engine.format_errors import format_named
from rejoinder.engine.limits import NO_LIMITS, Limits, check_count, check_limits
from rejoinder.engine.notices import Notices
from rejoinder.engine.planner import Plan, plan, refuse_products
from rejoinder.engine.positions import Position, kept, position_files, position_of
from rejoinder.engine.processing_time import ProcessingTime, steady_clock, system_clock
from rejoinder.engine.publishing import Publisher
from rejoinder.engine.remembering import oldest_in
from rejoinder.engine.rereading import Topics, delivered_files, unreadable
from rejoinder.engine.sink_progress import Delivered, note_name, recorded, to_json
from rejoinder.engine.starting import settled, started
from rejoinder.engine.state import Listed, State, bytes_written
from rejoinder.engine.telling import Promise, Promises
from rejoinder.engine.timeline import Timeline
from rejoinder.engine.watermarks import Partition, Signals, Times, Watermarks
from rejoinder.errors import Corrupt, Incomplete
from rejoinder.kernels.entropy import token
from rejoinder.kernels.faults import reach
from rejoinder.operators.stage import EpochWork, Setting
from rejoinder.operators.task import MAX_PAIRS, Clock, Report
from rejoinder.plan.catalog import SOURCE_CHANGES, Catalog, Source
from rejoinder.plan.delta import Statistics
from rejoinder.plan.physical import Dataflow
from rejoinder.store import gc
from rejoinder.store.manifest import Manifest, newest
from rejoinder.store.objects import ObjectStore
from rejoinder.store.spool import Spool

KEEP_VERSIONS = 8
HISTORY = 10_000
REMEMBERED = 10_000
SILENT = Signals()


@dataclass(frozen=True)
class Progress:
    """What an epoch did. `rows_out` counts changes as written, before netting over buckets.

    `lag_seconds` is the age of the newest file that the epoch read, at the commit; None if it read no file. `late` is
    how many rows came too late, by view and by whose they are. `notices` say what is odd: a clock that is not believed,
    a column that is NULL in every record of a file (once for each column).
    """

    epoch: int
    seconds: float
    rows_in: dict[str, int]
    rows_out: dict[str, int]
    bytes_written: int
    state_bytes: int
    lag_seconds: float | None = None
    late: dict[str, dict[str, int]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


class Engine:
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
        limits: Limits = NO_LIMITS,
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
        self.limits = limits
        self.lock = threading.RLock()
        self.progress: deque[Progress] = deque(maxlen=REMEMBERED)
        self.publisher = Publisher(store)
        self.clock = clock
        self._named: gc.Seen = {}
        self.started: int | None = None  # on the clock, when silence began to count
        self._idle: dict[str, set[Partition]] = {}
        self.promises = Promises()
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
        self.manifest = newest(self.store)
        if self.manifest is None:
            self.catalog = Catalog()
            self.state = State(self.buckets)
            self.timeline = Timeline()
            self.created: dict[str, int] = {}
            self.positions: dict[str, Any] = {}
            self.attached: dict[str, str] = {}
            self.sinks: dict[str, tuple[str, int]] = {}
            self.delivered: dict[str, Delivered] = {}
            self.watermarks = Watermarks()
            self.deliveries = Deliveries()
        else:
            with decoding(self.manifest):
                self.catalog = Catalog.from_json(self.manifest.catalog)
                self.state = State.from_json(self.manifest.spines).cut(self.buckets)
                self.timeline = Timeline.from_json(self.manifest.extra["timeline"])
                self.created = dict(self.manifest.extra["created"])
                self.positions = checked_positions(self.manifest)
                self.attached = dict(self.manifest.extra["attached"])
                self.sinks = {name: (one, since) for name, (one, since) in self.manifest.extra.get("sinks", {}).items()}
                self.delivered = recorded(self.store, self.manifest)
                self.watermarks = Watermarks.from_json(self.manifest.extra["watermarks"])
                self.deliveries = Deliveries.from_json(self.manifest.extra["deliveries"])
                self.time.wall = self.manifest.extra.get("clock")
        # Planned as it was when it was defined: other statistics could ask for arrangements that are not there.
        known = {} if self.manifest is None else self.manifest.extra["statistics"]
        self.plan: Plan = plan(self.catalog, {name: Statistics(*counts) for name, counts in known.items()})
        self._reorder()
        self.watermarks = self.watermarks.remembering(self.plan.remembered)

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
        """The watermarks, and what is remembered with them."""
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
        positions: dict[str, Any] | Callable[[], dict[str, Any]] | None = None,
        signals: Signals = SILENT,
    ) -> Progress | None:
        """Run and commit an epoch, once: None if it is the last committed one.

        `positions` says how far the sources are read after it (`engine.positions`); a function is called once the
        tasks are done. `signals` are what sources say besides their rows.
        """
        with self.lock, deletion_named(self):
            self.publisher.settle()
            if epoch == self.epoch:
                return None
            if epoch != self.epoch + 1:
                raise Corrupt(
                    f"the sources are at epoch {epoch}, and the state is at epoch {self.epoch}",
                    detail="what was read and what was committed do not belong together",
                    hint="restore Spark's checkpoint and the state from the same backup",
                )
            start = time.perf_counter()
            sources = self.plan.program.sources
            signals = signals.with_idle(self._idle)
            self.watermarks.check(sources, signals)
            reach("before_tasks", epoch)
            now = self.time.read(self.timeline.latest, time_ms).now
            self.started = now if self.started is None else self.started
            gates = self.plan.program.gates
            before = clock_of(gates, self.watermarks, now, self.timeline.latest)
            reports = self.executor.run(self._work(self.dataflow, epoch, self.state, before), splits)
            reach("after_tasks", epoch)
            totals = _totals(reports)
            state = self.state.with_reports(reports)
            moved = self.watermarks.advanced(sources, totals.observed, signals, now, self.started)
            moved = moved.remembering(self.plan.remembered, oldest_in(self.plan, state)).counting(totals.late)
            after = clock_of(gates, moved, now, now)
            moved = moved.opening(after.released)
            state = self._release(state, epoch, before, after, totals)
            check_limits(self.plan, self.catalog.views, state, self.limits)
            reach("after_release", epoch)
            if self.spool is not None:
                self.spool.clear(epoch)
            written = bytes_written(self.state, state)
            positions = positions() if callable(positions) else positions
            self._commit(
                self.catalog,
                self.plan,
                state,
                epoch=epoch,
                time_ms=now,
                positions=positions,
                watermarks=moved,
                deliveries=self.deliveries.after(epoch, totals.rows_in, totals.late, self.plan.program),
                accepted=lambda: self._take_in(signals, totals),
            )
            reach("after_commit", epoch)
            self._collect()
            reach("after_collection", epoch)
            return self._note(epoch, time.perf_counter() - start, totals, written)

    def _take_in(self, signals: Signals, totals: Report) -> None:
        """Forget what sources have said, now that an epoch with it is committed."""
        self._idle = {}
        self.promises.forget(signals.told)
        self.promises.note_newest(totals.newest)

    def _release(self, state: State, epoch: int, before: Clock, after: Clock, totals: Report) -> State:
        """Let out what became due in this very epoch, and forget the runs that are out as a whole."""
        gates = self.plan.program.gates
        dataflow = due_dataflow(gates, state, before, after, self.dataflow)
        if dataflow is not None:
            reports = self.executor.run_listed(self._work(dataflow, epoch, state, after), state.splits(dataflow))
            state = state.with_reports(reports)
            for name, rows in _totals(reports).rows_out.items():
                totals.rows_out[name] = totals.rows_out.get(name, 0) + rows
        return state.expired(gates, self.dataflow.retentions, after)

    def say_idle(self, source: Source, partition: Partition | None, known: Iterable[Partition] = ()) -> None:
        """Note that a partition (None: each one) sends nothing for now; the next epoch takes it in.

        `known` are partitions that the source itself names.
        """
        with self.lock:
            there = [*self.watermarks.partitions_of(source), *known]
            named = [partition] if partition is not None else there or [0]
            self.watermarks.check_partitions(source, named, known)
            self._idle.setdefault(source.name, set()).update(named)

    def say_watermark(
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
        """Note that no row below a value follows in a partition (None: each one that is known) of a source.

        An epoch takes it in whose caller finds it due (`Promises.due`). `is_running`: the next epoch may be planned
        already; `newest`: the newest file that the source has, if it is read in their order. Raises `WatermarkRegress`
        if it does not rise.
        """
        with self.lock:
            named = self.watermarks.told_partitions(source, partition, known)
            for each in named:
                last = self.promises.last(source.name, each, column)
                self.watermarks.check_rise(source, each, column, value, last)
            planned = self.epoch + (2 if is_running else 1)
            self.promises.pending += [Promise(source.name, each, column, value, planned, newest) for each in named]

    @property
    def is_ticking(self) -> bool:
        """Whether an epoch may have to come without input: because of the clock, or of what was or may be said."""
        program = self.plan.program
        timed = any(source.idle_after is not None or source.is_told for source in program.sources.values())
        said = bool(self._idle or self.promises.pending)
        return timed or said or any(gate.interval for gate in program.gates)

    def seconds_to_tick(self) -> float | None:
        """How long until an epoch without input has something to do; 0 if it has by now, None if it never will.

        Changes wait for the clock, a partition is silent for so long that it is idle, or something was said.
        """
        with self.lock:
            now, program = self.time.now(self.timeline.latest), self.plan.program
            if self._idle or self.promises.pending:
                return 0
            self.started = now if self.started is None else self.started
            tick = next_tick(program.gates, self.state, self.timeline.latest)
            idle = self.watermarks.next_idle(program.sources.values(), self.started)
            due = min((each for each in (tick, idle) if each is not None), default=None)
            return None if due is None else max(0, due - now) / 1000

    def _work(self, dataflow: Dataflow, epoch: int, state: State, clock: Clock) -> EpochWork:
        return EpochWork(self.setting(dataflow), epoch, state.parts, clock)

    def setting(self, dataflow: Dataflow | None = None) -> Setting:
        """What tasks of every epoch know, as long as nothing is defined anew."""
        return Setting(dataflow or self.dataflow, self.store, self.buckets, self.history, self.spool, self.max_pairs)

    def _note(self, epoch: int, seconds: float, totals: Report, written: int) -> Progress:
        size = sum(part.bytes for parts in self.state.arrangements.values() for part in parts)
        newest = max(totals.newest.values(), default=0)
        lag = max(0, self.clock() - newest) / 1000 if newest else None
        rows_out = {name: rows for name, rows in totals.rows_out.items() if not name.endswith(SOURCE_CHANGES)}
        notices = (
            *(() if self.time.notice is None else (self.time.notice,)),
            *self._notices.about(totals.null_columns),
        )
        progress = Progress(epoch, seconds, totals.rows_in, rows_out, written, size, lag, totals.late, notices)
        self.progress.append(progress)
        return progress

    # -- definitions ------------------------------------------------------------------------------------------------

    def define(self, catalog: Catalog) -> None:
        """Take over a new catalog at an epoch boundary: hydrate what is new, drop what is unused, commit.

        Raises `Incomplete` if rows that something new needs are no longer kept.
        """
        with self.lock, deletion_named(self):
            self.publisher.settle()
            catalog = settled(catalog, self.state, self.deliveries)
            catalog, (new, filling, watermarks, clock) = self._started(catalog)
            net_rows = partial(self.state.net_rows, self.store)
            refuse_products(new, self.dataflow, self.state.statistics(), self.max_pairs, net_rows)
            self.executor.check(new.dataflow.functions - self.dataflow.functions)
            state = self._hydrate(filling, clock)
            state = state.keeping([a.id for a in new.dataflow.arrangements], new.dataflow.views)
            changed = [view for view in catalog.views if view not in self.catalog.views]
            check_limits(new, changed, state, self.limits)
            created = {name: self.created.get(name, self.epoch) for name in new.dataflow.views}
            self._commit(catalog, new, state, epoch=self.epoch, created=created, watermarks=watermarks)
            self.promises.forget_but(source.name for source in catalog.sources)
            reach("after_definition", self.epoch)
            self._collect()

    def _started(self, catalog: Catalog) -> tuple[Catalog, tuple[Plan, Filling, Watermarks, Clock]]:
        """Plan a catalog. Sources of new views that are incomplete begin where the views say, if they do."""
        while True:
            try:
                return catalog, self._planned(catalog)
            except Incomplete as refused:
                catalog = started(catalog, self.state, refused, self.epoch)

    def _planned(self, catalog: Catalog) -> tuple[Plan, Filling, Watermarks, Clock]:
        """Plan a catalog and how what is new is filled.

        The statistics of today may ask for arrangements that nothing can fill; those of the last plan ask for none but
        for the new views.
        """
        try:
            return self._planned_with(catalog, self.state.statistics())
        except Incomplete:
            return self._planned_with(catalog, self.plan.program.statistics)

    def _planned_with(
        self, catalog: Catalog, statistics: Mapping[str, Statistics]
    ) -> tuple[Plan, Filling, Watermarks, Clock]:
        new = plan(catalog, statistics)
        watermarks = self.watermarks.remembering(new.remembered)
        clock = clock_of(new.program.gates, watermarks, self.timeline.latest, self.timeline.latest)
        return new, prepare(self, new, watermarks.times), watermarks.opening(clock.released), clock

    def annotate(self, positions: dict[str, Any]) -> None:
        """Commit how far the sources are read, between epochs."""
        with self.lock:
            self._commit(self.catalog, self.plan, self.state, epoch=self.epoch, positions=positions)

    def file_lines(self, stream: str) -> tuple[list[bytes], int]:
        """The files that a stream has read, as lines of Spark's log; how many of them came with its newest epoch."""
        files = position_of(self.positions, stream).files
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
            self._commit(self.catalog, self.plan, self.state, epoch=self.epoch)
            return True

    @property
    def writer_epoch(self) -> int:
        """How many drivers this flow had before the one of the last commit."""
        return 0 if self.manifest is None else self.manifest.writer_epoch

    def unreadable(self, source: Source) -> str | None:
        """Why the rows that a source has delivered cannot be read again; None if they can."""
        if source.format == "kafka" and self.topics is not None:
            return self.topics.unreadable(source, self._position(source))
        return unreadable(self.store, self.positions, self.attached, source)

    def _position(self, source: Source) -> Position:
        return position_of(self.positions, f"{self.attached[source.name]}/0")

    def records(self, filling: Filling) -> list[Listed]:
        """The records that a filling reads again, in this process."""
        if self.topics is None:
            return []
        found = [self.topics.collected(source, self._position(source)) for source in filling.topics]
        return [split for splits in found for split in splits]

    def reread(self, source: Source) -> list[Listed]:
        """The splits with all rows that a source has delivered."""
        return delivered_files(self.store, self.positions, self.attached, source)

    def _hydrate(self, filling: Filling, clock: Clock) -> State:
        if not filling.splits and not filling.topics:
            return filling.into(self.state, {})
        setting = replace(self.setting(filling.dataflow), forgetting=filling.forgetting)
        work = EpochWork(setting, self.epoch, filling.before, clock)
        if filling.topics and self.topics is not None:
            again = [(source, self._position(source)) for source in filling.topics]
            reports = self.topics.run(work, filling.splits, again)
        else:
            reports = self.executor.run_listed(work, filling.splits)
        reach("in_hydration", self.epoch)
        if self.spool is not None:
            self.spool.clear(self.epoch)
        return filling.into(self.state, reports)

    # -- commit -----------------------------------------------------------------------------------------------------

    def _commit(
        self,
        catalog: Catalog,
        new: Plan,
        state: State,
        *,
        epoch: int,
        time_ms: int | None = None,
        created: dict[str, int] | None = None,
        positions: dict[str, Any] | None = None,
        watermarks: Watermarks | None = None,
        deliveries: Deliveries | None = None,
        accepted: Callable[[], None] = lambda: None,
    ) -> None:
        """Publish the manifest; only then take the new state over, and call `accepted`."""
        self.publisher.settle()
        now = self.clock() if time_ms is None else time_ms
        timeline = self.timeline
        if epoch > self.epoch:
            timeline = timeline.after(self.store, epoch, now, epoch - self.history)
        created = self.created if created is None else created
        positions = self.positions if positions is None else positions
        watermarks = self.watermarks if watermarks is None else watermarks
        watermarks = watermarks.keeping(new.dataflow.scans, new.dataflow.views)
        attached = {name: self.attached.get(name) or token(4) for name in new.dataflow.scans}
        positions = kept(positions, set(attached.values()))
        sinks = {sink.name: self.sinks.get(sink.name) or (token(4), epoch) for sink in catalog.sinks}
        delivered = {one: self.delivered[one] for one, _ in sinks.values() if one in self.delivered}
        deliveries = (self.deliveries if deliveries is None else deliveries).keeping(new.dataflow.scans)
        if new is not self.plan:
            complete = complete_sources(new, watermarks.times, deliveries)
            deliveries = deliveries.noting(complete, epoch, now, new.program)
        content: dict[str, Any] = {
            "writer": self.publisher.writer,
            "epoch": epoch,
            "time_ms": now,
            "plan": fingerprint(new.dataflow),
            "catalog": catalog.to_json(),
            "spines": state.to_json(),
            "extra": {
                "timeline": timeline.to_json(),
                "clock": self.time.wall,
                "created": created,
                "positions": positions,
                "attached": attached,
                "sinks": sinks,
                "delivered": to_json(delivered),
                "statistics": {name: [known.rows, known.keys] for name, known in new.program.statistics.items()},
                "since": epoch - self.history,
                "watermarks": watermarks.to_json(),
                "deliveries": deliveries.to_json(),
            },
        }
        if self.manifest is None:
            manifest = Manifest.first(**content)
        else:
            manifest = self.manifest.successor(keep_versions=KEEP_VERSIONS, **content)

        def accept() -> None:
            self.manifest, self.catalog, self.plan, self.state = manifest, catalog, new, state
            self.timeline, self.created, self.positions, self.attached = timeline, created, positions, attached
            self.sinks, self.delivered = sinks, delivered
            self.watermarks, self.deliveries = watermarks, deliveries
            accepted()

        self.publisher.publish(manifest, accept)

    def _collect(self) -> None:
        gc.collect(self.store, KEEP_VERSIONS, named_files, known=self.manifest, seen=self._named)


def named_files(manifest: Manifest) -> set[str]:
    """All objects that a manifest names."""
    files = State.from_json(manifest.spines).files() | Timeline.from_json(manifest.extra["timeline"]).files()
    files |= position_files(manifest.extra["positions"])
    return files | {note_name(manifest)} if manifest.extra.get("sinks") else files


def _totals(reports: dict[int, Report]) -> Report:
    """What all buckets counted, added up."""
    totals = Report()
    for report in reports.values():
        totals.add(replace(report, spines={}, changelogs={}, emitted={}).to_json())
    return totals


def fingerprint(dataflow: Dataflow) -> str:
    """A short name of what is kept: arrangements and views. Paths may change without a change of state."""
    text = "\n".join([*sorted(a.id for a in dataflow.arrangements), *sorted(dataflow.views)])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

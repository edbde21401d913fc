"""A flow: sources, views and their state, kept up to date on Spark.

>>> import rejoinder as rj                                    # doctest: +SKIP
>>> flow = rj.Flow("state/shop")
>>> flow.sql("CREATE STREAM orders (id BIGINT, item STRING) USING parquet OPTIONS (path 'in/orders')")
>>> flow.sql("CREATE VIEW big AS SELECT id FROM orders WHERE id > 100")
>>> flow.run()
>>> flow.table("big").show()
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from rejoinder.api.flow_lifecycle import Lifecycle, name_of
from rejoinder.api.flow_maintenance import Maintenance
from rejoinder.api.flow_reads import Readings
from rejoinder.api.relations.relation import Relation
from rejoinder.api.relations.selection import Selection
from rejoinder.api.relations.windowed import WindowedTable
from rejoinder.api.sources.flow_input import Input
from rejoinder.api.sources.flow_sources import Sources
from rejoinder.api.sources.inbox import Inbox
from rejoinder.api.sources.unread_queries import answer_unread
from rejoinder.connectors.connector import Inputs
from rejoinder.connectors.function.connector import FUNCTION
from rejoinder.connectors.registry import source_side
from rejoinder.connectors.sink_definition import declared_sink
from rejoinder.connectors.source_stream import SourceStream
from rejoinder.engine.definitions.definition_batch import Batch, define_all
from rejoinder.engine.definitions.definition_statements import Definition, drop_statement, find_sink, has_same
from rejoinder.engine.definitions.function_registration import Functions, Registration
from rejoinder.engine.engine import HISTORY, Engine
from rejoinder.engine.epoch_progress import Progress
from rejoinder.engine.executors.delivery_hosts import SparkHost
from rejoinder.engine.executors.spark_executor import SparkExecutor
from rejoinder.engine.hydration.topic_replay import TopicReader
from rejoinder.engine.maintenance.backup import backup
from rejoinder.engine.notices import warn
from rejoinder.engine.outbox import Outbox
from rejoinder.engine.queries.view_serving import Serving
from rejoinder.engine.state_quota import StateQuota, check_count
from rejoinder.engine.statements import Answer, Queried, Streamed, execute, run_all
from rejoinder.engine.status.explain_statements import show
from rejoinder.engine.unread_sources import unread_sources
from rejoinder.errors import Unsupported, with_values
from rejoinder.exchange.session import spark_session
from rejoinder.exchange.streaming.query_runner import Runner
from rejoinder.exchange.streaming.ticks import Ticker
from rejoinder.exchange.tasks import view_reader
from rejoinder.host.caps import set_caps
from rejoinder.host.temporary_folders import own_folder
from rejoinder.ir.allowed_functions import allow_functions
from rejoinder.ir.catalog import Catalog, Sink
from rejoinder.ir.user_functions import FunctionKind
from rejoinder.plan.physical.dataflow import SourceScan
from rejoinder.runtime.task import MAX_PAIRS
from rejoinder.sql.definitions.view_options import STATE_BYTES, STATE_ROWS, checked_options
from rejoinder.sql.statements.start_text import start_of
from rejoinder.sql.statements.statement_parser import (
    AlterView,
    CreateSink,
    CreateView,
    Question,
    RenameView,
    Select,
    SetTimeZone,
)
from rejoinder.sql.types.zone_literals import checked_zone
from rejoinder.state.positions import Positions
from rejoinder.state.watermarks import Signals
from rejoinder.store.objects.object_store import Option, open_store
from rejoinder.store.runs.spool import Spool

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Flow(Lifecycle, Sources, Input, Readings, Maintenance, Functions):
    """A flow on a state directory (a path, or a URL such as s3://…).

    Creates a local Spark session unless `spark` is given. `parallelism` is the number of hash ranges; it may differ
    from run to run. `history` is the number of epochs for which changes and `as_of` stay readable. `max_pairs` limits
    the pairs of rows that one lookup may produce in an epoch and bucket. `max_state_rows` and `max_state_bytes` limit
    the state of each view without options of its own; an epoch that would exceed them is not committed. `show_values`
    lets errors quote values of rows. `functions` are those that SQL may call, or the names of their modules.
    `caps` raises or lowers caps of this process (docs/limits.md). `time_zone` is the zone in which a TIMESTAMP is
    shown, read and cast; the state keeps it, and another one is refused. Further keyword arguments are options of the
    store (credentials, endpoint).

    `with Flow(…) as flow:` closes the flow at the end: it is stopped, with its Spark session if it created that.
    """

    def __init__(
        self,
        state: str | os.PathLike[str],
        *,
        spark: SparkSession | None = None,
        parallelism: int | None = None,
        history: int = HISTORY,
        max_pairs: int = MAX_PAIRS,
        max_state_rows: int | None = None,
        max_state_bytes: int | None = None,
        show_values: bool = False,
        functions: Sequence[Callable[..., object] | str] = (),
        caps: Mapping[str, int] | None = None,
        checkpoint: str | None = None,
        time_zone: str | None = None,
        **store_options: Option,
    ) -> None:
        if parallelism is not None:
            check_count("parallelism", parallelism)
        self.show_values = show_values
        allow_functions(functions)
        set_caps(caps or {})
        store = open_store(os.fspath(state), **store_options)
        if store.url.startswith("memory:"):
            raise Unsupported(
                "the state of a flow on Spark cannot be in memory",
                detail=f"only this process sees `{store.url}`, and workers are other processes",
                hint="give a folder, or use rejoinder.testing.Driver",
            )
        spark = spark or spark_session.present_session()
        self.spark: SparkSession = spark or spark_session.make_session(parallelism or min(os.cpu_count() or 1, 32))
        if spark is not None:
            spark_session.check_session(spark)
            missing = spark_session.missing_settings(self.spark)
            listed = ", ".join(f"{name}={value}" for name, value in sorted(missing.items()))
            warn(f"this Spark session would be faster with {listed}" if missing else None)
        self._lease = spark_session.Lease(self.spark, is_made=spark is None)
        buckets = parallelism or max(1, self.spark.sparkContext.defaultParallelism)
        spool = Spool(own_folder(self, "spool")) if spark_session.is_local(self.spark) else None
        self._executor = SparkExecutor(self.spark, name_of(store))
        quota = StateQuota(max_state_rows, max_state_bytes)
        self.engine = Engine(
            store, self._executor, buckets=buckets, history=history, max_pairs=max_pairs, quota=quota, spool=spool
        )
        self.engine.topics = TopicReader(self._executor)
        self._frames: dict[str, DataFrame] = {}
        self._format = f"rejoinder-{uuid.uuid4().hex}"
        self._serving = serving = Serving(store)
        view_reader.register(
            self.spark, self._format, serving.schema, serving.partitions, serving.read, serving.first, serving.latest
        )
        beside = store.path if store.is_local else store.url.replace("s3:", "s3a:")
        folder = f"{beside}/spark" if checkpoint is None else checkpoint.removeprefix("file://")
        pending = store.path if store.is_local else folder
        if "://" in pending:  # inserted rows and ticks need a local folder; only this process reads them
            pending = own_folder(self, "waiting")
        self._inbox = Inbox(
            pending, lambda source: self.engine.version.attached[source], lambda: self.catalog.time_zone
        )
        ticker = Ticker(f"{pending}/ticks", self.engine.seconds_to_tick)
        self._runner = Runner(self.spark, folder, self.engine, self._on_batch, ticker, name=name_of(store))
        self._listeners: list[Callable[[Progress], None]] = []
        self._outbox = Outbox(self.engine, SparkHost(self.spark))
        if time_zone is not None:
            self.define(SetTimeZone(checked_zone(time_zone)))

    # -- definitions ------------------------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """All definitions."""
        return self.engine.version.catalog

    @with_values
    def sql(self, text: str) -> Any:
        """Run statements. Returns the result of the last one.

        That is a DataFrame for SELECT and SELECT STREAM, a list of snapshots for SELECT TVR (`str` formats them as
        tables), text for EXPLAIN, rows for SHOW, and None for a definition. Raises a `RejoinderError`.
        """
        return run_all(self.engine, text, self.define, self.answer, self._frame)

    def _frame(self, answer: Queried | Streamed) -> DataFrame:
        if isinstance(answer, Queried):
            return self.spark.createDataFrame(answer.table)
        if answer.view is not None:
            return view_reader.read_batch(self.spark, self._format, {"view": answer.view, "what": "changes"})
        return self.spark.createDataFrame(answer.table())

    @with_values
    def answer(self, statement: Question) -> Answer:
        """Answer SELECT, SHOW or EXPLAIN. A temporary flow answers a query on sources that no view reads."""
        if isinstance(statement, Select) and unread_sources(self.engine, statement.query):
            return answer_unread(self, statement)
        return execute(self.engine, statement)

    @with_values
    def define(self, *statements: Definition, is_rerun: bool = False) -> Batch:
        """Execute CREATE, ALTER and DROP between two epochs: all of them in one commit, or none.

        A running flow is stopped and started again. A definition whose sources have no committed rows may be replaced,
        with a warning. `is_rerun`: existing definitions are skipped, and the caller reports replaced ones
        (`Batch.notes`). Raises a `PlanningError`.
        """
        self._refuse_closed()
        running, interval = self._runner.is_running, self._runner.interval
        if running:
            self._runner.stop()
        try:
            epoch = self.engine.epoch
            batch = define_all(self.engine, statements, is_rerun=is_rerun, before_commit=self._outbox.check_new)
        finally:
            if running:
                self._start(once=False, interval=interval)
        if not running and self.engine.epoch != epoch:
            self._outbox.deliver()  # the difference of replaced views; a start delivers it as well
        for note in () if is_rerun else batch.notes:
            warn(note)
        return batch

    def _registration(self, kind: FunctionKind) -> Registration:
        return Registration(kind, lambda: self.catalog, self.define)

    def drop(self, name: str, *, cascade: bool = False) -> list[str]:
        """Drop a source, a view, an index or a sink; with `cascade` also its dependents.

        Returns the dropped names, `name` first. Raises `DefinitionConflict` if it has dependents and `cascade` is not
        set, and `UnknownName` if there is no such definition.
        """
        return self.define(drop_statement(self.engine.version.catalog, name, cascade=cascade)).dropped

    def relation(self, name: str) -> Relation:
        """Return a source, a view or a side output (`view.late`) by name, to build queries from."""
        return Relation.of(self, name)

    def view(
        self,
        name: str,
        query: str | Selection,
        *,
        max_state_rows: int | None = None,
        max_state_bytes: int | None = None,
        starting_at: str | int | datetime | None = None,
    ) -> Relation:
        """Create a view from SQL text or a relation, stream or table; optionally with a state quota of its own.

        Incomplete sources begin at `starting_at`: "now", the number of an epoch, or an event time (in UTC). Without it,
        a view on an incomplete source raises `Incomplete`.
        """
        if isinstance(query, WindowedTable):
            raise Unsupported(
                f"`{name}` would be a view of a windowed table",
                detail=f"columns: {', '.join(query.columns)}",
                hint='choose columns of the window: flow.view(…, windowed.to_stream("window.start AS start", …))',
            )
        text = query if isinstance(query, str) else query.query
        quota = {STATE_ROWS: max_state_rows, STATE_BYTES: max_state_bytes}
        options = checked_options(name, {option: str(limit) for option, limit in quota.items() if limit is not None})
        starting = None if starting_at is None else start_of(starting_at)
        self.define(CreateView(name, text, options=options, starting=starting))
        return self.relation(name)

    def replace(self, name: str, query: str | Selection, *, cascade: bool = False) -> Relation:
        """Give a view another query: ALTER VIEW … AS. It keeps its options, its start and its history.

        Readers, sinks and the views above it get the difference of the content as one epoch. With `cascade`, the views
        above it may get other columns. Raises `DefinitionConflict` if something that reads it would break.
        """
        self.define(AlterView(name, query=query if isinstance(query, str) else query.query, cascade=cascade))
        return self.relation(name)

    def rename(self, name: str, new_name: str) -> Relation:
        """Rename a view: ALTER VIEW … RENAME TO. Its state, indexes and sinks stay. Raises `DefinitionConflict`."""
        self.define(RenameView(name, new_name))
        return self.relation(new_name)

    def sink(self, view: str, format: str, *, name: str | None = None, **options: object) -> None:  # noqa: A002
        """Deliver the changes of a view to a sink, epoch by epoch: CREATE SINK IF NOT EXISTS.

        The default name is `<view>_<format>`. An option that is a Python keyword has an underscore: `from_="now"`.
        """
        self._create_sink(declared_sink(view, format, name, options))

    def foreach_epoch(
        self, view: str, function: Callable[[int, DataFrame], object], *, name: str | None = None, from_: str = "start"
    ) -> None:
        """Call `function(epoch, changes)` after every epoch in which a view changed, with a DataFrame of the changes.

        The DataFrame has the view's columns, `_epoch` and `_diff`. Read it before the function returns. After a crash,
        the function may be called again with the same epoch. Each process must declare it again.
        """
        sink = declared_sink(view, FUNCTION.name, name, {"from": from_})
        existing = find_sink(self.engine.version.catalog, sink.name)
        self._outbox.functions[sink.name if existing is None else existing.name] = function
        self._create_sink(sink)

    def _create_sink(self, sink: Sink) -> None:
        statement = CreateSink(sink)
        if not has_same(self.engine.version.catalog, statement):
            self.define(statement)

    def sinks(self) -> list[dict[str, Any]]:
        """Return sink, view, format, options (secrets hidden) and the last delivered epoch of each sink."""
        return show(self.engine, "SINKS")

    # -- running ----------------------------------------------------------------------------------------------------

    @with_values
    def run(self) -> list[Progress]:
        """Process all available input, then return one Progress per epoch. Raises the error of a failed epoch.

        Notices of the epochs become warnings. Those of a started flow are in its progress.
        """
        before, watermarks = self.engine.epoch, list(self.engine.pending_watermarks.entries)
        self._run_once()
        if watermarks:
            with self.engine.lock:
                self.engine.pending_watermarks.mark_read(watermarks)
            self._run_once()
        epochs = [progress for progress in self.engine.progress if progress.epoch > before]
        for notice in dict.fromkeys(notice for progress in epochs for notice in progress.notices):
            warn(notice)
        return epochs

    def _run_once(self) -> None:
        self._start(once=True, interval="")
        self._runner.wait()

    @with_values
    def start(self, *, interval: str = "0 seconds") -> None:
        """Run in the background: an epoch whenever there is input, at most one per interval."""
        self._start(once=False, interval=interval)

    @with_values
    def stop(self) -> None:
        """Stop after the current epoch. Raises the error that stopped the flow before, if there was one."""
        self._runner.stop()

    @with_values
    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the flow stops by itself. Returns False after a timeout. Raises the error that stopped it."""
        return self._runner.wait(seconds)

    @property
    def is_running(self) -> bool:
        """Whether the flow is running in the background."""
        return self._runner.is_running

    def _start(self, *, once: bool, interval: str) -> None:
        self._refuse_closed()
        self.engine.check_present()
        scans = [scan.source for scan in self.engine.dataflow.scans.values() if isinstance(scan, SourceScan)]
        for source in scans:
            if source_side(source).takes_diffs:
                self._inbox.prepare(source)
        self.engine.replan()
        self._outbox.deliver()  # epochs that the last process committed and did not deliver
        setting = self.engine.setting()
        self._runner.start(
            [SourceStream(source, Inputs(self._frames, self._inbox.folder)) for source in scans],
            add_rounds=lambda splits: self._executor.prepare(splits, setting),
            is_ticking=self.engine.is_ticking,
            once=once,
            interval=interval,
        )

    def _on_batch(self, batch: DataFrame, epoch: int) -> None:
        with self.engine.lock:  # a thread that stops the flow waits for the delivery too
            watermarks = self.engine.pending_watermarks.due(self._runner.is_drained)
            signals = Signals(watermarks, partitions=self._runner.partitions)
            progress = self.engine.run_epoch(epoch, batch, positions=partial(self._positions, epoch), signals=signals)
            self._outbox.deliver()
        if progress is not None:
            for listener in self._listeners:
                listener(progress)

    def _positions(self, epoch: int, signatures: Mapping[str, str]) -> Positions:
        """Return the positions after an epoch that Spark has planned, with the signatures of its files."""
        positions = self.engine.version.positions
        return positions.advanced(self.engine.store, epoch, *self._runner.read(epoch), signatures)

    def backup(self, target: str | os.PathLike[str], **store_options: Option) -> int:
        """Copy the newest committed epoch to `target` and return it. The flow may be running.

        `target` is an empty folder or URL, or an earlier backup of this flow, which is updated. The checksum of every
        object is checked. To restore, copy it back, or open it. Raises `Corrupt` if the state is damaged.
        """
        return backup(self.engine.store, open_store(os.fspath(target), **store_options)).epoch

    def on_progress(self, listener: Callable[[Progress], None]) -> None:
        """Call `listener` after every epoch."""
        self._listeners.append(listener)

    def warm_up(self) -> None:
        """Start the workers and run a small flow, so that the first epoch is not the slowest."""
        from rejoinder.api.warmup import warm_up

        warm_up(self.spark, self.engine.buckets)

"""A driver for tests: the same plan, operators, store and commits as on Spark, in this process, epoch by epoch.

>>> from rejoinder.testing import Driver
>>> driver = Driver()
>>> driver.sql("CREATE STREAM orders (id BIGINT, item STRING)")
>>> driver.sql("CREATE TABLE prices (item STRING, price BIGINT, PRIMARY KEY (item))")
>>> driver.sql("CREATE VIEW priced AS SELECT id, price FROM orders JOIN prices USING (item)")
>>> driver.insert("orders", {"id": 1, "item": "tea"})
>>> driver.insert("prices", {"item": "tea", "price": 3})
>>> driver.step()
{'priced': [({'id': 1, 'price': 3}, 1)]}
>>> driver.insert("prices", {"item": "tea", "price": 4})
>>> driver.step()["priced"]
[({'id': 1, 'price': 3}, -1), ({'id': 1, 'price': 4}, 1)]
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from rejoinder.connectors.function.connector import FUNCTION
from rejoinder.connectors.sink_definition import declared_sink
from rejoinder.engine.definitions.definition_batch import Batch, define_all, new_sources
from rejoinder.engine.definitions.definition_statements import Definition, drop_statement, has_same
from rejoinder.engine.definitions.function_registration import Functions, Registration
from rejoinder.engine.engine import HISTORY, Engine
from rejoinder.engine.executors.delivery_hosts import LocalHost
from rejoinder.engine.maintenance.state_deletion import deletion_named
from rejoinder.engine.maintenance.vacuum import Vacuumed, vacuum
from rejoinder.engine.notices import warn
from rejoinder.engine.outbox import Function, Outbox
from rejoinder.engine.state_quota import StateQuota
from rejoinder.engine.statements import Answer, Queried, Streamed, execute, run_all
from rejoinder.engine.time.explicit_watermarks import event_time, explicit_watermark
from rejoinder.engine.time.processing_time import system_clock
from rejoinder.engine.unread_sources import unread_sources
from rejoinder.errors import EvaluationError, FunctionFailed, InputError, MissingInput, with_values
from rejoinder.formats.text.plain_rows import Row, Rows, plain_rows
from rejoinder.host.caps import set_caps
from rejoinder.ir.allowed_functions import allow_functions
from rejoinder.ir.catalog import Catalog, Sink, Source
from rejoinder.ir.splits import RowsSplit, Split, split_batch
from rejoinder.ir.user_functions import FunctionKind
from rejoinder.kernels.user_functions.answer_checks import AnswerCheck
from rejoinder.plan.physical.dataflow import SourceScan
from rejoinder.runtime.task import MAX_PAIRS
from rejoinder.sql.statements.statement_parser import (
    AlterView,
    CreateSink,
    Question,
    RenameView,
    Select,
    SetTimeZone,
)
from rejoinder.sql.types.zone_literals import checked_zone
from rejoinder.state.executor import LocalExecutor
from rejoinder.state.reading.renderings import net_changes
from rejoinder.state.watermarks import Partition
from rejoinder.store.objects.object_store import Option, open_store
from rejoinder.store.runs.run import drop_open_runs
from rejoinder.testing.driver_reads import Readings
from rejoinder.testing.file_sources import ignored_options, new_files
from rejoinder.testing.input_rows import encoded, refuse_other_than_rows, time_of
from rejoinder.testing.signals import PendingSignals
from rejoinder.testing.tables import Change
from rejoinder.testing.unread_files import answer_unread

_names = itertools.count()


class Driver(Readings, Functions):
    """One flow in this process. `store` is a path or URL (else one in memory), with its options.

    `max_pairs` limits the pairs of rows that one lookup may produce in an epoch and bucket. `max_state_rows` and
    `max_state_bytes` limit the state of each view without options of its own. `show_values` lets errors quote values
    of rows. `clock` returns the processing time in milliseconds since 1970, for steps without a time. `check_functions`
    calls every declared function twice, and raises `NotDeterministic` if it gives two answers for the same arguments.
    `time_zone` is the zone in which a TIMESTAMP is shown, read and cast; UTC unless the state has another one.
    """

    def __init__(
        self,
        *,
        store: str | os.PathLike[str] | None = None,
        parallelism: int = 1,
        history: int = HISTORY,
        max_pairs: int = MAX_PAIRS,
        max_state_rows: int | None = None,
        max_state_bytes: int | None = None,
        show_values: bool = False,
        functions: Sequence[Callable[..., object] | str] = (),
        caps: Mapping[str, int] | None = None,
        clock: Callable[[], int] = system_clock,
        check_functions: bool = False,
        time_zone: str | None = None,
        **store_options: Option,
    ) -> None:
        url = f"memory://driver-{os.getpid()}-{next(_names)}" if store is None else os.fspath(store)
        self._store = open_store(url, **store_options)
        self.show_values = show_values
        allow_functions(functions)
        set_caps(caps or {})
        self._history, self._max_pairs = history, max_pairs
        self._quota = StateQuota(max_state_rows, max_state_bytes)
        self._clock = clock
        self._at: int | None = None  # the processing time of the last step, if the caller gave it
        self._pending: list[tuple[Source, Row, int]] = []
        self._signals = PendingSignals()
        self._functions: dict[str, Function] = {}
        self._host = LocalHost()
        self._check = AnswerCheck() if check_functions else None
        self._open(parallelism)
        if time_zone is not None:
            self._define(SetTimeZone(checked_zone(time_zone)))

    def _open(self, parallelism: int) -> None:
        drop_open_runs(self._store)
        self._engine = Engine(
            self._store,
            LocalExecutor(self._check),
            buckets=parallelism,
            history=self._history,
            max_pairs=self._max_pairs,
            quota=self._quota,
            clock=self._clock,
        )
        self._engine.replan()
        self._outbox = Outbox(self._engine, self._host)
        self._outbox.functions = self._functions

    def __repr__(self) -> str:
        sources, views = len(self.catalog.sources), len(self.catalog.views)
        return f"<Driver {self._store.url}: epoch {self.epoch}, sources {sources}, views {views}>"

    # -- definitions and queries --------------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """All definitions."""
        return self._engine.version.catalog

    @with_values
    def sql(self, text: str) -> Any:
        """Run statements. Returns the rows of a query, the text of EXPLAIN, the rows of SHOW, or None, of the last one.

        Rows and snapshots are lists, which `str` formats as aligned tables.
        """
        return run_all(self._engine, text, self._define, self._answer, _rows)

    def _registration(self, kind: FunctionKind) -> Registration:
        return Registration(kind, lambda: self.catalog, self._define)

    def drop(self, name: str, *, cascade: bool = False) -> list[str]:
        """Drop a source, a view, an index or a sink, as `Flow.drop`. Returns the dropped names."""
        return self._define(drop_statement(self._engine.version.catalog, name, cascade=cascade)).dropped

    def _define(self, *statements: Definition) -> Batch:
        check, epoch = self._outbox.check_new, self.epoch
        batch = define_all(self._engine, statements, before_commit=check, time_ms=self._at)
        for source in new_sources(batch):
            warn(ignored_options(source))
            self._pending = [entry for entry in self._pending if entry[0].name.lower() != source.name.lower()]
            self._signals.remove(source)
        for note in batch.notes:
            warn(note)
        if self.epoch != epoch:
            self._outbox.deliver()  # the difference of replaced views
        return batch

    def replace(self, name: str, query: str, *, cascade: bool = False) -> dict[str, list[tuple[Row, int]]]:
        """Give a view another query, as `Flow.replace`. Returns the net changes by view, as `step` does."""
        epoch = self.epoch
        self._define(AlterView(name, query=query, cascade=cascade))
        return self._last_changes() if self.epoch != epoch else {}

    def rename(self, name: str, new_name: str) -> None:
        """Rename a view, as `Flow.rename`."""
        self._define(RenameView(name, new_name))

    def _answer(self, statement: Question) -> Answer:
        """Answer SELECT, SHOW or EXPLAIN. A temporary driver answers a query on sources that no view reads."""
        if not isinstance(statement, Select) or not unread_sources(self._engine, statement.query):
            return execute(self._engine, statement)
        make = partial(Driver, parallelism=self._engine.buckets, max_pairs=self._max_pairs)
        return answer_unread(self._engine, statement, make, self._pending)

    def sink(self, view: str, format: str, *, name: str | None = None, **options: object) -> None:  # noqa: A002
        """CREATE SINK IF NOT EXISTS, as `Flow.sink`: files and the console are written in this process."""
        self._create_sink(declared_sink(view, format, name, options))

    def foreach_epoch(self, view: str, function: Function, *, name: str | None = None, from_: str = "start") -> None:
        """Call `function(epoch, changes)` after every step in which a view changed, with an Arrow table of the changes.

        It has the view's columns, `_epoch` and `_diff`.
        """
        sink = declared_sink(view, FUNCTION.name, name, {"from": from_})
        self._functions[sink.name] = function
        self._create_sink(sink)

    def _create_sink(self, sink: Sink) -> None:
        statement = CreateSink(sink)
        if not has_same(self._engine.version.catalog, statement):
            self._define(statement)

    # -- input --------------------------------------------------------------------------------------------------------

    @with_values
    def insert(self, relation: str, *rows: Row) -> None:
        """Insert rows into a source. The next step reads them. In a table, a row replaces the one of its key."""
        source = self._source(relation)
        refuse_other_than_rows(source, rows)
        self._signals.rows(source, rows)
        self._pending += [(source, row, 1) for row in rows]

    @with_values
    def delete(self, relation: str, *rows: Row) -> None:
        """Delete rows from a source with the next step. For a table, only the key is needed."""
        source = self._source(relation)
        if source.kind == "stream":
            raise InputError(
                f"stream `{source.name}` is append-only",
                detail=f"{len(rows)} row(s) to delete",
                hint="declare it with CREATE CHANGELOG, or with CREATE TABLE and a PRIMARY KEY, to delete rows",
            )
        refuse_other_than_rows(source, rows)
        self._signals.rows(source, rows)
        self._pending += [(source, row, -1) for row in rows]

    @with_values
    def load(self, relation: str, changes: list[Change]) -> list[dict[str, list[tuple[Row, int]]]]:
        """Apply changes (of `from_table`) to a source, one epoch per time. Returns the net changes of each epoch."""
        result = []
        for _, group in itertools.groupby(changes, key=lambda change: change.time):
            for change in group:
                act = self.insert if change.diff > 0 else self.delete
                act(relation, *[change.row] * abs(change.diff))
            result.append(self.step())
        return result

    def _source(self, name: str) -> Source:
        relation = self._engine.version.catalog.get(name)
        if not isinstance(relation, Source):
            raise InputError(
                f"`{name}` is a view: its rows come from its query",
                detail=f"{relation.name}: {relation.query}",
                hint="name a source that it reads",
            )
        # The planned source has the watermarks that views impose.
        return self._engine.version.plan.program.sources.get(relation.name, relation)

    def watermark(
        self, relation: str, time: Any, column: str | None = None, partition: Partition | None = None
    ) -> None:
        """Pass an explicit watermark: no row below `time` follows in an event-time column. The next step applies it.

        It applies to a partition; None means all known ones. If the watermark that follows from rows is higher, that
        counts. Raises `WatermarkRegress`, without effect, if it is not above the last explicit one.
        """
        source = self._source(relation)
        name = event_time(source, column)
        self._signals.watermark(
            source,
            partition,
            name,
            explicit_watermark(source, name, time, self.catalog.time_zone),
            self._engine.version.watermarks,
        )

    def idle(self, relation: str, partition: Partition | None = None) -> None:
        """Mark a partition of a source as idle; None means all known ones.

        From the next step on, its watermarks are ignored until its next row or watermark. Raises `MissingInput` if
        there is no such partition.
        """
        source = self._source(relation)
        event_time(source, next(iter(source.watermarks), None))
        self._signals.idle(source, partition, self._engine.version.watermarks)

    # -- epochs -------------------------------------------------------------------------------------------------------

    @with_values
    def step(self, at: datetime | int | None = None) -> dict[str, list[tuple[Row, int]]]:
        """Commit one epoch at processing time `at` (datetime in UTC, or milliseconds). Returns the net changes by view.

        If the epoch fails because of its rows, the rows and the pending signals are dropped. After any other failure,
        such as that of a user function or of a file that cannot be read, they stay pending for the next step. After
        `Unconfirmed` they belong to an epoch that the next step commits first.
        """
        self._at = time_ms = time_of(at)
        self._engine.publisher.settle()
        self._outbox.deliver()  # epochs that were committed and not delivered
        read = {scan.source.name for scan in self._engine.dataflow.scans.values() if isinstance(scan, SourceScan)}
        pending = [entry for entry in self._pending if entry[0].name in read]
        self._pending = [entry for entry in self._pending if entry[0].name not in read]  # no view reads them yet
        signals, self._signals = self._signals, PendingSignals()
        epoch = self._engine.epoch + 1
        try:
            splits: list[Split] = []
            for name in {source.name: source for source, _, _ in pending}:
                entries = [(row, sign) for into, row, sign in pending if into.name == name]
                splits.append(RowsSplit(name, encoded(self._source(name), entries, self.catalog.time_zone)))
            with deletion_named(self._engine):
                positions, files = new_files(self._engine)
            splits += files
            progress = self._engine.run_epoch(
                epoch, [split_batch(splits)], time_ms=time_ms, positions=positions, signals=signals.signals()
            )
        except (InputError, EvaluationError) as refused:
            if isinstance(refused, FunctionFailed | MissingInput):
                self._pending, self._signals = [*pending, *self._pending], signals
            raise
        except BaseException:
            if self._engine.epoch < epoch and not self._engine.publisher.is_open(epoch):
                # otherwise they are committed, or part of the next commit
                self._pending, self._signals = [*pending, *self._pending], signals
            raise
        self._outbox.deliver()
        for notice in () if progress is None else progress.notices:
            if notice != self._engine.time.notice:  # the caller of step controls the clock
                warn(notice)
        return self._last_changes()

    def _last_changes(self) -> dict[str, list[tuple[Row, int]]]:
        """Return the net changes of the last epoch by view."""
        changes, dataflow = {}, self._engine.dataflow
        for view, schema in dataflow.views.items():
            with deletion_named(self._engine):
                changed = net_changes(self._store, self._manifest, view, schema, self.epoch)
            if view in self._engine.version.plan.program.views or (changed and view not in dataflow.source_changes):
                changes[view] = changed
        return changes

    @with_values
    def restart(self, *, parallelism: int | None = None) -> None:
        """Drop all memory and recover from the store. Pending rows are lost, as in a crash."""
        self._open(self._engine.buckets if parallelism is None else parallelism)
        self._pending, self._signals = [], PendingSignals()

    def vacuum(self, *, dry_run: bool = False, older_than: timedelta = timedelta(days=1)) -> Vacuumed:
        """Delete unreferenced files, as `Flow.vacuum`; with `dry_run`, only list them."""
        return vacuum(self._store, dry_run=dry_run, older_than_seconds=older_than.total_seconds())


def _rows(answer: Queried | Streamed) -> Rows:
    return plain_rows(answer.table, is_ordered=answer.is_ordered) if isinstance(answer, Queried) else answer.rows()

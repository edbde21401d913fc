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
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from rejoinder.connectors.delivery_hosts import LocalHost
from rejoinder.engine.definitions.definition_batch import Batch, define_all, grouped, new_sources
from rejoinder.engine.definitions.definition_statements import Definition, drop_statement, find_sink, has_same
from rejoinder.engine.engine import HISTORY, Engine
from rejoinder.engine.maintenance.state_deletion import deletion_named
from rejoinder.engine.maintenance.vacuum import Vacuumed, vacuum
from rejoinder.engine.outbox import Function, Outbox
from rejoinder.engine.state_quota import StateQuota
from rejoinder.engine.statements import (
    Answer,
    Explained,
    Queried,
    Shown,
    Streamed,
    Varied,
    execute,
    find_view,
    view_note,
)
from rejoinder.engine.status.explain_statements import output_watermarks, show
from rejoinder.engine.time.explicit_watermarks import event_time, explicit_watermark
from rejoinder.engine.time.processing_time import system_clock
from rejoinder.engine.unread_sources import unread_sources
from rejoinder.errors import (
    EvaluationError,
    FunctionFailed,
    InputError,
    MissingInput,
    NotCommitted,
    UnknownName,
    near_misses,
    with_values,
)
from rejoinder.host.caps import set_caps
from rejoinder.ir.allowed_functions import allow_functions
from rejoinder.ir.catalog import LATE, SOURCE_CHANGES, Catalog, Sink, Source
from rejoinder.plan.physical.dataflow import SourceScan
from rejoinder.runtime.task import MAX_PAIRS
from rejoinder.sql.definitions.sink_definition import PYTHON, make_sink
from rejoinder.sql.statements.statement_parser import CreateSink, Select, Statement, parse_statements
from rejoinder.state.changelog_reader import epoch_of
from rejoinder.state.executor import LocalExecutor, split_batch
from rejoinder.state.renderings import (
    Row,
    Rows,
    Snapshots,
    changes_of,
    net_changes,
    plain_rows,
    snapshots_of,
    stream_rows,
    table_rows,
)
from rejoinder.state.watermarks import Partition
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.object_store import Option, open_store
from rejoinder.store.runs.run import drop_open_runs
from rejoinder.testing.file_sources import new_files, unheeded
from rejoinder.testing.input_rows import encoded, refuse_other_than_rows, time_of
from rejoinder.testing.signals import PendingSignals
from rejoinder.testing.tables import Change
from rejoinder.testing.unread_files import answer_unread

_names = itertools.count()


class Driver:
    """One flow in this process. `store` is a path or URL (else one in memory), with its options.

    `max_pairs` limits how many pairs of rows one lookup may make in an epoch and bucket; `max_state_rows` and
    `max_state_bytes` how much may be kept for a view that does not say so itself. `show_values` lets errors quote
    values of rows. `clock` gives the processing time in milliseconds since 1970, for steps that are given none.
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
        self._pending: list[tuple[Source, Row, int]] = []
        self._signals = PendingSignals()
        self._functions: dict[str, Function] = {}
        self._host = LocalHost()
        self._open(parallelism)

    def _open(self, parallelism: int) -> None:
        drop_open_runs(self._store)
        self._engine = Engine(
            self._store,
            LocalExecutor(),
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
        return self._engine.catalog

    @with_values
    def sql(self, text: str) -> Any:
        """Run statements. Gives the rows of the last query, the text of EXPLAIN, the rows of SHOW; else None.

        Rows and snapshots are lists, and `str` makes aligned tables of them.
        """
        result: Any = None
        for statement in grouped(parse_statements(text), self._engine):
            if isinstance(statement, list):
                self._define(*statement)
                result = None
                continue
            match self._answer(statement):
                case Explained(text=text):
                    result = text
                case Shown(rows=rows):
                    result = rows
                case Queried(table=table, is_ordered=is_ordered, note=note):
                    _say(note)
                    result = plain_rows(table, is_ordered=is_ordered)
                case Streamed() as streamed:
                    _say(streamed.note)
                    result = streamed.rows()
                case Varied(snapshots=snapshots, note=note):
                    _say(note)
                    result = snapshots
        return result

    def drop(self, name: str, *, cascade: bool = False) -> list[str]:
        """Drop a source, a view, an index or a sink, as `Flow.drop`; give the names of what was dropped."""
        return self._define(drop_statement(self._engine.catalog, name, cascade=cascade)).dropped

    def _define(self, *statements: Definition) -> Batch:
        batch = define_all(self._engine, statements, before_commit=self._outbox.check_new)
        for source in new_sources(batch):
            _say(unheeded(source))
            self._pending = [entry for entry in self._pending if entry[0].name.lower() != source.name.lower()]
            self._signals.remove(source)
        for note in batch.notes:
            _say(note)
        return batch

    def _answer(self, statement: Statement) -> Answer | None:
        """Carry a statement out. A query on sources that no view reads has a driver of its own, which reads them."""
        if not isinstance(statement, Select) or not unread_sources(self._engine, statement.query):
            return execute(self._engine, statement)
        make = partial(Driver, parallelism=self._engine.buckets, max_pairs=self._max_pairs)
        return answer_unread(self._engine, statement, make, self._pending)

    def sink(self, view: str, format: str, *, name: str | None = None, **options: object) -> None:  # noqa: A002
        """CREATE SINK IF NOT EXISTS, as `Flow.sink`: files and the console are written in this process."""
        given = {option.rstrip("_"): str(value) for option, value in options.items()}
        self._create_sink(make_sink(name or f"{view.replace('.', '_')}_{format}", view, format.lower(), given))

    def foreach_epoch(self, view: str, function: Function, *, name: str | None = None, from_: str = "start") -> None:
        """Call `function(epoch, changes)` after every step in which a view changed, with an Arrow table of the changes.

        It has the view's columns, `_epoch` and `_diff`.
        """
        sink = make_sink(name or f"{view.replace('.', '_')}_{PYTHON}", view, PYTHON, {"from": from_})
        self._functions[sink.name] = function
        self._create_sink(sink)

    def _create_sink(self, sink: Sink) -> None:
        statement = CreateSink(sink)
        if not has_same(self._engine.catalog, statement):
            self._define(statement)

    # -- input --------------------------------------------------------------------------------------------------------

    @with_values
    def insert(self, relation: str, *rows: Row) -> None:
        """Put rows into a source; they arrive with the next step. In a table, a row replaces the one of its key."""
        source = self._source(relation)
        refuse_other_than_rows(source, rows)
        self._signals.rows(source, rows)
        self._pending += [(source, row, 1) for row in rows]

    @with_values
    def delete(self, relation: str, *rows: Row) -> None:
        """Take rows out of a source with the next step. A table needs the key only."""
        source = self._source(relation)
        if source.kind == "stream":
            raise InputError(
                f"stream `{source.name}` is append-only",
                detail=f"{len(rows)} row(s) to take out",
                hint="declare it with CREATE CHANGELOG, or with CREATE TABLE and a PRIMARY KEY, to take rows out",
            )
        refuse_other_than_rows(source, rows)
        self._signals.rows(source, rows)
        self._pending += [(source, row, -1) for row in rows]

    @with_values
    def load(self, relation: str, changes: list[Change]) -> list[dict[str, list[tuple[Row, int]]]]:
        """Play changes (of `from_table`) into a source, one epoch per time, and give what each epoch changed."""
        result = []
        for _, group in itertools.groupby(changes, key=lambda change: change.time):
            for change in group:
                act = self.insert if change.diff > 0 else self.delete
                act(relation, *[change.row] * abs(change.diff))
            result.append(self.step())
        return result

    def _source(self, name: str) -> Source:
        relation = self._engine.catalog.get(name)
        if not isinstance(relation, Source):
            raise InputError(
                f"`{name}` is a view: its rows come from its query",
                detail=f"{relation.name}: {relation.query}",
                hint="name a source that it reads",
            )
        return self._engine.plan.program.sources.get(relation.name, relation)  # with watermarks that views impose

    def watermark(
        self, relation: str, time: Any, column: str | None = None, partition: Partition | None = None
    ) -> None:
        """Say that no row below `time` comes any more in an event-time column; it counts from the next step on.

        It is about a partition (None: each one that is known). Raises `WatermarkRegress`, and changes nothing, if it
        was told as much before. What follows from the rows that came may be higher: then that counts.
        """
        source = self._source(relation)
        name = event_time(source, column)
        self._signals.watermark(
            source, partition, name, explicit_watermark(source, name, time), self._engine.watermarks
        )

    def idle(self, relation: str, partition: Partition | None = None) -> None:
        """Say that a partition of a source (None: each one that is known) sends nothing for now.

        From the next step on nobody waits for its watermarks, until its next row or watermark. Raises `MissingInput` if
        there is no such partition.
        """
        source = self._source(relation)
        event_time(source, next(iter(source.watermarks), None))
        self._signals.idle(source, partition, self._engine.watermarks)

    # -- epochs -------------------------------------------------------------------------------------------------------

    @with_values
    def step(self, at: datetime | int | None = None) -> dict[str, list[tuple[Row, int]]]:
        """Commit one epoch at processing time `at` (datetime in UTC, or milliseconds); give the net changes by view.

        An epoch that is refused because of its rows has not happened, and the rows are gone, with what was said of
        watermarks and idle sources. After any other failure, such as that of a function that was asked about them or
        of a file that cannot be read, they wait for the next step. After `Unconfirmed` they belong to an epoch that the
        next step commits first.
        """
        time_ms = time_of(at)
        self._engine.publisher.settle()
        self._outbox.deliver()  # what was committed and not delivered
        read = {scan.source.name for scan in self._engine.dataflow.scans.values() if isinstance(scan, SourceScan)}
        pending = [each for each in self._pending if each[0].name in read]
        self._pending = [each for each in self._pending if each[0].name not in read]  # they wait for a reader
        said, self._signals = self._signals, PendingSignals()
        epoch = self._engine.epoch + 1
        try:
            splits: list[tuple[str, str | None, int, bytes | None]] = []
            for name, source in {source.name: source for source, _, _ in pending}.items():
                entries = [(row, sign) for into, row, sign in pending if into.name == name]
                splits += [(name, None, 0, encoded(source, entries))]
            with deletion_named(self._engine):
                positions, files = new_files(self._engine)
            splits += files
            progress = self._engine.run_epoch(
                epoch, [split_batch(splits)], time_ms=time_ms, positions=positions, signals=said.signals()
            )
        except (InputError, EvaluationError) as refused:
            if isinstance(refused, FunctionFailed | MissingInput):
                self._pending, self._signals = [*pending, *self._pending], said
            raise
        except BaseException:
            if self._engine.epoch < epoch and not self._engine.publisher.is_open(epoch):
                # else they are committed, or the next commit is theirs
                self._pending, self._signals = [*pending, *self._pending], said
            raise
        self._outbox.deliver()
        for notice in () if progress is None else progress.notices:
            if notice != self._engine.time.notice:  # whoever steps says what time it is
                _say(notice)
        changes = {}
        for view, schema in self._engine.dataflow.views.items():
            with deletion_named(self._engine):
                changed = net_changes(self._store, self._manifest, view, schema, epoch)
            if "." not in view or (changed and not view.endswith(SOURCE_CHANGES)):
                changes[view] = changed
        return changes

    @with_values
    def restart(self, *, parallelism: int | None = None) -> None:
        """Forget all memory and recover from the store. Rows that were not stepped yet are lost, as in a crash."""
        self._open(self._engine.buckets if parallelism is None else parallelism)
        self._pending, self._signals = [], PendingSignals()

    def vacuum(self, *, dry_run: bool = False, older_than: timedelta = timedelta(days=1)) -> Vacuumed:
        """Delete what nobody names any more, as `Flow.vacuum`; with `dry_run` only say what it is."""
        return vacuum(self._store, dry_run=dry_run, older_than_seconds=older_than.total_seconds())

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The last committed epoch; −1 before the first."""
        return self._engine.epoch

    @property
    def _manifest(self) -> Manifest:
        if self._engine.manifest is None:
            raise NotCommitted("nothing is committed yet", hint="define a view and step")
        return self._engine.manifest

    @with_values
    def table(self, view: str, as_of: int | datetime | None = None) -> Rows:
        """The rows of a view now, or as of an epoch or a time."""
        name, schema = find_view(self._engine, view)
        with deletion_named(self._engine):
            epoch = None if as_of is None else epoch_of(self._store, self._manifest, as_of)
            return table_rows(self._store, self._manifest, name, schema, epoch)

    @with_values
    def stream(self, view: str) -> Rows:
        """All changes of a view, with `_epoch`, `_emit_time` and `_undo`."""
        name, schema = find_view(self._engine, view)
        with deletion_named(self._engine):
            _say(view_note(self._engine, name))
            return stream_rows(changes_of(self._store, self._manifest, name, schema))

    @with_values
    def tvr(self, view: str) -> Snapshots:
        """The sequence of the view's snapshots."""
        name, schema = find_view(self._engine, view)
        with deletion_named(self._engine):
            _say(view_note(self._engine, name))
            return snapshots_of(changes_of(self._store, self._manifest, name, schema))

    def watermarks(self, view: str) -> dict[str, Any]:
        """Below which times nothing of a view changes any more, by its columns; of a window, by its start.

        SHOW WATERMARKS tells those of the sources.
        """
        name, _ = find_view(self._engine, view)
        return output_watermarks(self._engine, name)

    def late(self, view: str) -> list[Row]:
        """The rows that came too late for the view: input, row (as JSON), column, watermark, how far behind, undo."""
        name, _ = find_view(self._engine, view)
        return self.table(name + LATE) if name + LATE in self._engine.dataflow.views else []

    def messages(self, sink: str) -> list[Row]:
        """What a sink USING kafka has sent since this driver was opened: `key`, `value` and the `epoch` of each."""
        found = find_sink(self._engine.catalog, sink)
        if found is None or found.format != "kafka":
            known = [each.name for each in self._engine.catalog.sinks if each.format == "kafka"]
            raise UnknownName(
                f"there is no sink `{sink}` that sends messages",
                detail=f"sinks USING kafka: {', '.join(known) or 'none'}",
                hint=near_misses(sink, known) or "CREATE SINK … USING kafka",
            )
        return list(self._host.messages.get(found.name, ()))

    def arrangements(self) -> list[Row]:
        """What SHOW ARRANGEMENTS shows: what is kept, as stored. A row that was taken back counts until a merge."""
        return show(self._engine, "ARRANGEMENTS")


def _say(note: str | None) -> None:
    if note is not None:
        warnings.warn(note, stacklevel=3)

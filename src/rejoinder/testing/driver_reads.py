"""Reads of the test driver: views as rows, changes and snapshots; watermarks, late rows, messages, state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rejoinder.connectors.registry import sink_side
from rejoinder.engine.causes.why import Causes, condition_text, why
from rejoinder.engine.causes.why_not import Reasons, why_not
from rejoinder.engine.definitions.definition_statements import find_sink
from rejoinder.engine.engine import Engine
from rejoinder.engine.executors.delivery_hosts import LocalHost
from rejoinder.engine.maintenance.state_deletion import deletion_named
from rejoinder.engine.notices import warn
from rejoinder.engine.queries.subscription import Subscription
from rejoinder.engine.statements import find_view, view_note
from rejoinder.engine.status.explain_statements import output_watermarks, show
from rejoinder.errors import NotCommitted, UnknownName, near_misses, with_values
from rejoinder.formats.text.plain_rows import Row, Rows
from rejoinder.ir.identities import SideOutput
from rejoinder.state.reading.changelog_reader import epoch_of
from rejoinder.state.reading.renderings import Changes, Snapshots, changes_of, snapshots_of, stream_rows, table_rows
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.object_store import ObjectStore


class Readings:
    """The part of a driver that is read. `_host` has the messages that sinks sent."""

    show_values: bool
    _engine: Engine
    _store: ObjectStore
    _host: LocalHost

    @property
    def epoch(self) -> int:
        """The last committed epoch; −1 before the first."""
        return self._engine.epoch

    @property
    def _manifest(self) -> Manifest:
        if self._engine.version.manifest is None:
            raise NotCommitted("nothing is committed yet", hint="define a view and step")
        return self._engine.version.manifest

    @with_values
    def table(self, view: str, *, as_of: int | datetime | None = None) -> Rows:
        """Return the rows of a view now, or as of an epoch or a time."""
        name, schema = find_view(self._engine, view)
        with deletion_named(self._engine):
            epoch = None if as_of is None else epoch_of(self._store, self._manifest, as_of)
            return table_rows(self._store, self._manifest, name, schema, epoch)

    @with_values
    def stream(self, view: str) -> Rows:
        """Return all changes of a view, with `_epoch`, `_emit_time` and `_undo`."""
        return stream_rows(self._changes(view))

    @with_values
    def tvr(self, view: str) -> Snapshots:
        """Return the sequence of the view's snapshots."""
        return snapshots_of(self._changes(view))

    @with_values
    def why(self, view: str, where: str | Mapping[str, Any] | None = None, *, as_of: int | None = None) -> Causes:
        """Return what makes the rows of a view that fulfil a condition: input rows with the time of their arrival.

        `where` is a condition in SQL, or a row as a dict of column values; `as_of` an epoch. `str` shows a tree.
        """
        with deletion_named(self._engine):
            return why(self._engine, view, condition_text(where), as_of)

    def why_not(self, view: str, where: str | Mapping[str, Any]) -> Reasons:
        """Return at which step a row that is expected in a view fails, with values; `str` shows one line per reason.

        `where` fixes columns of the expected row: `column = value` conditions in SQL, or a dict.
        """
        with deletion_named(self._engine):
            return why_not(self._engine, view, condition_text(where))

    @with_values
    def subscribe(
        self, view: str, *, where: str | None = None, start: int | None = None, as_of: int | None = None
    ) -> Subscription:
        """Follow the changes of a view: `poll` after a step, as `Flow.subscribe`."""
        return Subscription(self._store, view, where=where, start=start, as_of=as_of)

    def _changes(self, view: str) -> Changes:
        name, schema = find_view(self._engine, view)
        with deletion_named(self._engine):
            warn(view_note(self._engine, name))
            return changes_of(self._store, self._manifest, name, schema)

    def watermarks(self, view: str) -> dict[str, Any]:
        """Return the output watermarks of a view by column; that of a window is of its start.

        SHOW WATERMARKS shows those of the sources.
        """
        name, _ = find_view(self._engine, view)
        return output_watermarks(self._engine.version, name)

    def late(self, view: str) -> list[Row]:
        """Return the late rows of a view: input, row (as JSON), column, watermark, how far behind, undo."""
        name, _ = find_view(self._engine, view)
        late = str(SideOutput(name, "late"))
        return self.table(late) if late in self._engine.dataflow.views else []

    def messages(self, sink: str) -> list[Row]:
        """Return the messages of a sink USING kafka since this driver was opened: `key`, `value` and `epoch`."""
        named = find_sink(self._engine.version.catalog, sink)
        if named is None or not sink_side(named).sends_messages:
            names = [other.name for other in self._engine.version.catalog.sinks if sink_side(other).sends_messages]
            raise UnknownName(
                f"there is no sink `{sink}` that sends messages",
                detail=f"sinks USING kafka: {', '.join(names) or 'none'}",
                hint=near_misses(sink, names) or "CREATE SINK … USING kafka",
            )
        return list(self._host.messages.get(named.name, ()))

    def arrangements(self) -> list[Row]:
        """Return the rows of SHOW ARRANGEMENTS, as stored: a retracted row counts until a compaction."""
        return show(self._engine, "ARRANGEMENTS")

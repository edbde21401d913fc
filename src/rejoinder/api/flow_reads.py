"""Reads of a flow: views as tables, changes and snapshots; plans, state and progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rejoinder.engine.causes.why import Causes, condition_text, why
from rejoinder.engine.causes.why_not import Reasons, why_not
from rejoinder.engine.engine import Engine
from rejoinder.engine.maintenance.state_deletion import deletion_named
from rejoinder.engine.notices import warn
from rejoinder.engine.queries.subscription import Subscription
from rejoinder.engine.queries.view_serving import Serving
from rejoinder.engine.statements import explained, find_view, view_note
from rejoinder.engine.status.explain_statements import show
from rejoinder.exchange.tasks import view_reader
from rejoinder.state.reading.changelog_reader import epoch_of, expanded, read_table
from rejoinder.state.reading.renderings import Snapshots, changes_of, snapshots_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Readings:
    """The part of a flow that is read. `_serving` serves views to Spark under the name `_format`."""

    spark: SparkSession
    engine: Engine
    _serving: Serving
    _format: str

    def table(self, view: str, *, as_of: int | datetime | None = None) -> DataFrame:
        """Return the rows of a view as a DataFrame, now or as of an epoch or a time."""
        name, _ = find_view(self.engine, view)
        epoch = epoch_of(self.engine.store, self._serving.manifest(), as_of)
        options = {"view": name, "what": "table", "as_of": str(epoch)}
        return view_reader.read_batch(self.spark, self._format, options)

    def changes(self, view: str) -> DataFrame:
        """Return the changes of a view as a streaming DataFrame, with `_epoch`, `_emit_time`, `_undo` and `_diff`."""
        name, _ = find_view(self.engine, view)
        warn(view_note(self.engine, name))
        return view_reader.read_stream(self.spark, self._format, {"view": name, "what": "changes"})

    def why(self, view: str, where: str | Mapping[str, Any] | None = None, *, as_of: int | None = None) -> Causes:
        """Return what makes the rows of a view that fulfil a condition: input rows with the time of their arrival.

        `where` is a condition in SQL, or a row as a dict of column values; `as_of` an epoch. `str` shows a tree.
        """
        with deletion_named(self.engine):
            return why(self.engine, view, condition_text(where), as_of)

    def why_not(self, view: str, where: str | Mapping[str, Any]) -> Reasons:
        """Return at which step a row that is expected in a view fails, with values; `str` shows one line per reason.

        `where` fixes columns of the expected row: `column = value` conditions in SQL, or a dict.
        """
        with deletion_named(self.engine):
            return why_not(self.engine, view, condition_text(where))

    def subscribe(
        self, view: str, *, where: str | None = None, start: int | None = None, as_of: int | None = None
    ) -> Subscription:
        """Follow the changes of a view, without Spark. `poll()` returns what is committed; iteration waits for more.

        `start` is the first epoch, `as_of` the epoch whose content comes first; without either, changes from now on.
        """
        return Subscription(self.engine.store, view, where=where, start=start, as_of=as_of)

    def tvr(self, view: str) -> Snapshots:
        """Return the sequence of the view's snapshots with their periods; `str` formats it as tables."""
        name, schema = find_view(self.engine, view)
        with deletion_named(self.engine):
            warn(view_note(self.engine, name))
            return snapshots_of(changes_of(self.engine.store, self._serving.manifest(), name, schema))

    def arrow(self, view: str, *, as_of: int | datetime | None = None) -> pa.Table:
        """Return the rows of a view as an Arrow table, read in this process."""
        name, schema = find_view(self.engine, view)
        with deletion_named(self.engine):
            manifest = self._serving.manifest()  # read it once: a running flow continues to commit
            epoch = epoch_of(self.engine.store, manifest, as_of)
            return expanded(read_table(self.engine.store, manifest, name, schema, as_of=epoch))

    def explain(self, view: str) -> str:
        """Return the plan of a view or query: paths, arrangements and which views share them.

        For definitions such as CREATE OR REPLACE VIEW, return what they would change. They have no effect.
        """
        return explained(self.engine, view)

    def arrangements(self) -> list[dict[str, Any]]:
        """Return name, relation, key, kind, rows, bytes, runs and users of each arrangement, as stored.

        A retracted or replaced row counts until a compaction has netted it.
        """
        return show(self.engine, "ARRANGEMENTS")

    def watermarks(self) -> list[dict[str, Any]]:
        """Return the rows of SHOW WATERMARKS: one for each event-time column of each partition.

        `watermark` is that of the partition (None before its first row), `source_watermark` that of the source,
        `idle_since` when the partition became idle, `blocks` the views that wait for it.
        """
        return show(self.engine, "WATERMARKS")

    @property
    def progress(self) -> list[dict[str, Any]]:
        """The progress of each epoch of this process."""
        return [asdict(p) for p in self.engine.progress]

    @property
    def epoch(self) -> int:
        """The last committed epoch; −1 before the first."""
        return self.engine.epoch

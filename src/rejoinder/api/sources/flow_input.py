"""Input of a flow that is given by calls: inserted and deleted rows, explicit watermarks, idle partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rejoinder.api.sources.inbox import Inbox
from rejoinder.connectors.registry import source_side
from rejoinder.engine.engine import Engine
from rejoinder.engine.time.explicit_watermarks import event_time, explicit_watermark
from rejoinder.errors import InvalidSql, with_values
from rejoinder.ir.catalog import Source

if TYPE_CHECKING:
    from rejoinder.exchange.streaming.query_runner import Runner


class Input(ABC):
    """The part of a flow that takes input by calls. `_inbox` has the rows that no epoch has read."""

    engine: Engine
    show_values: bool
    _inbox: Inbox
    _runner: Runner

    @abstractmethod
    def _start(self, *, once: bool, interval: str) -> None:
        """Start the streaming query."""

    @with_values
    def insert(self, relation: str, rows: pa.Table | Sequence[Mapping[str, Any]]) -> None:
        """Insert rows into a source that was created without USING. The next epoch reads them. Raises `InputError`."""
        self._inbox.add(self._memory_source(relation), rows, 1)

    @with_values
    def delete(self, relation: str, rows: pa.Table | Sequence[Mapping[str, Any]]) -> None:
        """Delete rows from a source that was created without USING; for a table, only the key is needed."""
        self._inbox.add(self._memory_source(relation), rows, -1)

    def idle(self, source: str, partition: int | str | None = None) -> None:
        """Mark a partition of a source as idle; None means all known partitions.

        From the next epoch on, its watermarks are ignored until its next row. A running flow runs that epoch at once.
        Rows in transit may be late then. The mark is lost if the process ends before the epoch. Raises `MissingInput`
        if there is no such partition.
        """
        relation = self._timed_source(source)
        self.engine.mark_idle(relation, partition, self._runner.partitions.get(relation.name, ()))
        self._make_epoch()

    def watermark(self, source: str, time: Any, column: str | None = None, partition: int | str | None = None) -> None:
        """Pass an explicit watermark: no row below `time` follows in a partition; None means all known partitions.

        Unread rows of the source may still be below it, so it is applied after they are read. `run()` applies it when
        it has read all input, a running flow when it has read the rows that were inserted before. For a source with
        external input, that is after the first epoch without new input. The watermark is lost if the process ends
        before that. Raises `WatermarkRegress`, without effect, if it is not above the last explicit one.
        """
        relation = self._timed_source(source)
        name = event_time(relation, column)
        value = explicit_watermark(relation, name, time, self.engine.version.catalog.time_zone)
        partitions = self._runner.partitions.get(relation.name, ())
        is_in_order = source_side(relation).takes_diffs and "latestfirst" not in relation.options
        newest = self._inbox.newest(relation) if is_in_order else None
        is_running = self._runner.is_running
        self.engine.add_watermark(relation, name, value, partition, partitions, is_running=is_running, newest=newest)
        self._make_epoch()

    def _timed_source(self, name: str) -> Source:
        """Return a source with the watermarks that views impose on it. Raises `InvalidSql` if it has none."""
        declared = self.engine.version.catalog.get(name)
        relation = self.engine.version.plan.program.sources.get(declared.name, declared)
        if not isinstance(relation, Source) or not relation.watermarks:
            raise InvalidSql(
                f"`{relation.name}` has no watermark to wait for",
                hint="name a source that was declared with WATERMARK",
            )
        return relation

    def _make_epoch(self) -> None:
        """Make a running flow apply pending signals in an epoch."""
        if not self._runner.is_running:
            return
        if self._runner.is_ticking:
            self._runner.ticker.wake()
        else:  # the query was started without ticks, so it cannot run an epoch without input
            self._runner.stop()
            self._start(once=False, interval=self._runner.interval)

    def _memory_source(self, name: str) -> Source:
        source = self.engine.version.catalog.get(name)
        if not isinstance(source, Source) or not source_side(source).takes_diffs:
            raise InvalidSql(f"`{name}` is not an in-memory source", hint="create it without USING")
        return source

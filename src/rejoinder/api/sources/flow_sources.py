"""Sources of a flow that are declared in Python: streaming DataFrames and Kafka topics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from rejoinder.api.relations.relation import Relation
from rejoinder.api.relations.stream import Stream
from rejoinder.api.relations.table import Table
from rejoinder.api.sources.frame_declaration import Columns, frame_fields, topic_source, watermark
from rejoinder.connectors.dataframe.connector import DATAFRAME
from rejoinder.engine.definitions.definition_batch import Batch
from rejoinder.engine.definitions.definition_statements import Definition
from rejoinder.ir.catalog import Catalog, Kind
from rejoinder.sql.definitions.source_definition import make_source
from rejoinder.sql.statements.statement_parser import CreateSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Sources(ABC):
    """The part of a flow that declares sources. `_frames` are the DataFrames of this process, by source."""

    _frames: dict[str, DataFrame]

    @property
    @abstractmethod
    def catalog(self) -> Catalog:
        """All definitions."""

    @abstractmethod
    def sql(self, text: str) -> Any:
        """Run statements."""

    @abstractmethod
    def define(self, *statements: Definition, is_rerun: bool = False) -> Batch:
        """Execute definitions in one commit."""

    @abstractmethod
    def relation(self, name: str) -> Relation:
        """Return a source or view by name."""

    def stream(
        self,
        name: str,
        frame: DataFrame,
        *,
        event_time: str | None = None,
        delay: str | int | None = None,
        **options: str | int,
    ) -> Stream:
        """Declare a streaming DataFrame as an append-only stream.

        `event_time` names the event-time column. The watermark follows the largest time seen, minus `delay`, as in
        "5 seconds". Without a delay, the watermark is explicit (`Flow.watermark`). Further keyword arguments are the
        options of OPTIONS (…) in SQL: late, partition_by, partitions, idle_after, max_ahead.
        """
        self._declare(name, "stream", frame, (), options, watermark(name, event_time, delay))
        return Stream.of(self, name, time=event_time)

    def keyed(
        self,
        name: str,
        frame: DataFrame,
        *,
        key: str | Sequence[str],
        order: str | None = None,
        op: str | None = None,
        event_time: str | None = None,
        delay: str | int | None = None,
        **more: str | int,
    ) -> Table:
        """Declare a streaming DataFrame as a table: each row replaces the one of its key; `op` marks deletes.

        `event_time`, `delay` and further options are as for `stream`.
        """
        keys = (key,) if isinstance(key, str) else tuple(key)
        options = {"order": order, "op": op}
        texts = {**more, **{k: v for k, v in options.items() if v}}
        self._declare(name, "table", frame, keys, texts, watermark(name, event_time, delay))
        return Table.of(self, name)

    def changelog(
        self,
        name: str,
        frame: DataFrame,
        *,
        op: str | None = None,
        diff: str | None = None,
        event_time: str | None = None,
        delay: str | int | None = None,
        **more: str | int,
    ) -> Relation:
        """Declare a streaming DataFrame as a changelog: `op` or `diff` names the column with the kind of change.

        `event_time`, `delay` and further options are as for `stream`.
        """
        texts = {**more, **{k: v for k, v in {"op": op, "diff": diff}.items() if v}}
        return self._declare(name, "changelog", frame, (), texts, watermark(name, event_time, delay))

    @overload
    def kafka(self, name: str, columns: Columns, *, kind: Literal["stream"] = "stream", **options: Any) -> Stream: ...
    @overload
    def kafka(self, name: str, columns: Columns, *, kind: Literal["table"], **options: Any) -> Table: ...
    @overload
    def kafka(self, name: str, columns: Columns, *, kind: Literal["changelog"], **options: Any) -> Relation: ...

    def kafka(
        self,
        name: str,
        columns: Columns,
        *,
        kind: Kind = "stream",
        key: str | Sequence[str] = (),
        event_time: str | None = None,
        delay: str | int | None = None,
        options: Mapping[str, str] | None = None,
        **more: str | int,
    ) -> Stream | Table | Relation:
        """Declare a Kafka topic as a source, as CREATE … USING kafka does. `columns` maps names to SQL types.

        `bootstrap`, `topic` and further options (`format="avro"`, `timestamp="ts"`) are keyword arguments; those with
        dots in their names, such as `kafka.security.protocol`, go into `options`. Secrets are given as "env:NAME".
        `key` names the columns that a record's key fills: for a table, its primary key.
        """
        keys = (key,) if isinstance(key, str) else tuple(key)
        texts = {**(options or {}), **{option: str(value) for option, value in more.items()}}
        if keys and kind != "table":  # the key of a table is its primary key
            texts["key"] = ", ".join(keys)
        primary = keys if kind == "table" else ()
        source = topic_source(name, kind, columns, primary, texts, watermark(name, event_time, delay))
        self.define(CreateSource(source, if_not_exists=True))
        if kind == "changelog":
            return self.relation(name)
        return Table.of(self, name) if kind == "table" else Stream.of(self, name)

    def _declare(
        self,
        name: str,
        kind: Kind,
        frame: DataFrame,
        key: tuple[str, ...],
        options: Mapping[str, str | int],
        watermarks: Mapping[str, str],
    ) -> Relation:
        texts = {option: str(value) for option, value in options.items()}
        source = make_source(name, kind, frame_fields(name, frame), key, DATAFRAME.name, texts, watermarks)
        existing = self.catalog.find(name)
        self._frames[source.name if existing is None else existing.name] = frame
        self.define(CreateSource(source, if_not_exists=True))
        return self.relation(name)

"""A Delta table as a sink: changes appended, or a row per key kept up to date. Delta itself takes an epoch once.

The epoch is the version of a transaction of the sink's own application id: an epoch that is delivered again is passed
over by Delta in the very commit that would write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from rejoinder.connectors.delivery import DELIVERED_COLUMNS, Delivery, absolute
from rejoinder.errors import SinkFailed
from rejoinder.exchange.connectors import delta_tables
from rejoinder.exchange.connectors.keyed_changes import by_key, duplicate_key
from rejoinder.faults import reach
from rejoinder.ir.catalog import Sink
from rejoinder.sql.definitions.sink_definition import key_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class DeltaTarget:
    """The table at `path`, made by the first delivery if it is not there."""

    sink: Sink
    identity: str
    schema: pa.Schema
    session: SparkSession
    remembers: ClassVar[bool] = True

    @property
    def application(self) -> str:
        """What the sink is called in Delta's transactions."""
        return f"rejoinder-{self.identity}"

    @property
    def path(self) -> str:
        """Where the table is."""
        return absolute(self.sink.options["path"])

    @property
    def is_keyed(self) -> bool:
        """Whether the table has a row per key, rather than changes."""
        return self.sink.options.get("mode", "append") == "upsert"

    def check(self) -> None:
        """Refuse a table whose columns are others."""
        delta_tables.prepare(self.session)
        path = self.path
        if not delta_tables.is_table(self.session, path):
            return
        wanted = [*self.schema.names, *([] if self.is_keyed else DELIVERED_COLUMNS.names)]
        refuse_other_columns(self.sink, path, wanted, delta_tables.columns_of(self.session, path))

    def delivered(self) -> int | None:
        """The last epoch in the table."""
        path = self.path
        return (
            delta_tables.last_version(self.session, path, self.application)
            if delta_tables.is_table(self.session, path)
            else None
        )

    def deliver(self, delivery: Delivery) -> None:
        """Append the changes, or merge them by key."""
        path, changes = self.path, delivery.whole()
        reach("in_delivery", delivery.epoch)
        if not self.is_keyed:
            delta_tables.append(changes, path, self.application, delivery.epoch)
            return
        key = key_of(self.sink, self.schema)
        rows = one_per_key(self.sink, changes, key)
        try:
            delta_tables.merge(rows, path, key, self.application, delivery.epoch)
        except delta_tables.UnexpectedRowError as found:
            raise other_rows(self.sink, path, f"epoch {delivery.epoch}", values=f"the row of key {found}") from None
        finally:
            rows.unpersist()


def one_per_key(sink: Sink, changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """What becomes of each key, cached. Raises if the view has more than one row for a key."""
    rows = by_key(changes, key).cache()
    double = duplicate_key(rows, key)
    if double is not None:
        rows.unpersist()
        copies = double.pop("_copies")
        values = ", ".join(f"{name} = {value!r}" for name, value in double.items())
        raise SinkFailed(
            f"`{sink.view}` has {copies} rows for one key of sink `{sink.name}`",
            detail=f"columns of the key: {', '.join(double)}",
            values=f"key {values}",
            hint="name columns that tell the rows apart, group by the key in the view, or append changes instead",
        )
    return rows


def other_rows(sink: Sink, place: str, detail: str, values: str | None = None) -> SinkFailed:
    """The error for a table in which rows to insert are there, or rows to replace are not."""
    return SinkFailed(
        f"table `{place}` does not hold what sink `{sink.name}` has put there",
        detail=detail,
        values=values,
        hint=f"is ({sink.options['key']}) unique in `{sink.view}`, and does nobody else write to the table? Nothing "
        f"was changed; to start over, empty the table, DROP SINK {sink.name} and create it again",
    )


def refuse_other_columns(sink: Sink, place: str, wanted: Sequence[str], there: Sequence[str]) -> None:
    """Refuse a table that lacks a column of the view."""
    known = {name.lower() for name in there}
    missing = [name for name in wanted if name.lower() not in known]
    if missing:
        raise SinkFailed(
            f"table `{place}` of sink `{sink.name}` has no column `{missing[0]}`",
            detail=f"needed: {', '.join(wanted)}; found: {', '.join(there)}",
            hint="add the column, use another table, or select other columns in the view",
        )

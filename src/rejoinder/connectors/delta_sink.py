"""The Delta sink: appends changes, or maintains one row per key with MERGE. Delivery is exactly once.

The epoch is the version of a Delta transaction with an application id of the sink. Delta skips an epoch that is
delivered again, in the commit that would write it.
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
    """The table at `path`. The first delivery creates it if it does not exist."""

    sink: Sink
    identity: str
    schema: pa.Schema
    session: SparkSession
    stores_epochs: ClassVar[bool] = True

    @property
    def application(self) -> str:
        """The application id of the sink in Delta transactions."""
        return f"rejoinder-{self.identity}"

    @property
    def path(self) -> str:
        """The absolute path of the table."""
        return absolute(self.sink.options["path"])

    @property
    def is_keyed(self) -> bool:
        """Whether the table has one row per key instead of changes."""
        return self.sink.options.get("mode", "append") == "upsert"

    def check(self) -> None:
        """Raise `SinkFailed` if the table exists and lacks a column."""
        delta_tables.prepare(self.session)
        path = self.path
        if not delta_tables.is_table(self.session, path):
            return
        needed = [*self.schema.names, *([] if self.is_keyed else DELIVERED_COLUMNS.names)]
        check_columns(self.sink, path, needed, delta_tables.columns_of(self.session, path))

    def delivered(self) -> int | None:
        """Return the last epoch in the table; None if there is no table or no epoch."""
        path = self.path
        return (
            delta_tables.last_version(self.session, path, self.application)
            if delta_tables.is_table(self.session, path)
            else None
        )

    def deliver(self, delivery: Delivery) -> None:
        """Append the changes, or MERGE them by key. Raises `SinkFailed` if the table has unexpected rows."""
        path, changes = self.path, delivery.whole()
        reach("in_delivery", delivery.epoch)
        if not self.is_keyed:
            delta_tables.append(changes, path, self.application, delivery.epoch)
            return
        key = key_of(self.sink, self.schema)
        rows = one_per_key(self.sink, changes, key)
        try:
            delta_tables.merge(rows, path, key, self.application, delivery.epoch)
        except delta_tables.UnexpectedRowError as row:
            raise unexpected_rows(self.sink, path, f"epoch {delivery.epoch}", values=f"the row of key {row}") from None
        finally:
            rows.unpersist()


def one_per_key(sink: Sink, changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the change of each key, cached. Raises `SinkFailed` if the view has more than one row for a key."""
    rows = by_key(changes, key).cache()
    duplicate = duplicate_key(rows, key)
    if duplicate is not None:
        rows.unpersist()
        copies = duplicate.pop("_copies")
        values = ", ".join(f"{name} = {value!r}" for name, value in duplicate.items())
        raise SinkFailed(
            f"`{sink.view}` has {copies} rows for one key of sink `{sink.name}`",
            detail=f"columns of the key: {', '.join(duplicate)}",
            values=f"key {values}",
            hint="choose key columns that identify a row, group by the key in the view, or append changes instead",
        )
    return rows


def unexpected_rows(sink: Sink, place: str, detail: str, values: str | None = None) -> SinkFailed:
    """Return the error for a table that already has rows to insert, or lacks rows to replace."""
    return SinkFailed(
        f"table `{place}` does not hold what sink `{sink.name}` has put there",
        detail=detail,
        values=values,
        hint=f"is ({sink.options['key']}) unique in `{sink.view}`, and does nobody else write to the table? Nothing "
        f"was changed; to start over, empty the table, DROP SINK {sink.name} and create it again",
    )


def check_columns(sink: Sink, place: str, needed: Sequence[str], actual: Sequence[str]) -> None:
    """Raise `SinkFailed` if a table lacks a column of the view. The case of names is ignored."""
    known = {name.lower() for name in actual}
    missing = [name for name in needed if name.lower() not in known]
    if missing:
        raise SinkFailed(
            f"table `{place}` of sink `{sink.name}` has no column `{missing[0]}`",
            detail=f"needed: {', '.join(needed)}; found: {', '.join(actual)}",
            hint="add the column, use another table, or select other columns in the view",
        )

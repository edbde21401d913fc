"""The Delta sink: appends changes, or maintains one row per key with MERGE. Delivery is exactly once.

The epoch is the version of a Delta transaction with an application id of the sink. Delta skips an epoch that is
delivered again, in the commit that would write it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from rejoinder.connectors.delivery import DELIVERED_COLUMNS, Delivery, Target, absolute
from rejoinder.connectors.delta.spark import tables
from rejoinder.connectors.sink_key import key_of
from rejoinder.connectors.spark.keyed_changes import check_columns, one_per_key, unexpected_rows
from rejoinder.faults import reach
from rejoinder.ir.catalog import Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class DeltaTarget(Target):
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
        tables.prepare(self.session)
        path = self.path
        if not tables.is_table(self.session, path):
            return
        needed = [*self.schema.names, *([] if self.is_keyed else DELIVERED_COLUMNS.names)]
        check_columns(self.sink, path, needed, tables.columns_of(self.session, path))

    def delivered(self) -> int | None:
        """Return the last epoch in the table; None if there is no table or no epoch."""
        path = self.path
        return (
            tables.last_version(self.session, path, self.application) if tables.is_table(self.session, path) else None
        )

    def deliver(self, delivery: Delivery) -> None:
        """Append the changes, or MERGE them by key. Raises `SinkFailed` if the table has unexpected rows."""
        path, changes = self.path, delivery.whole()
        reach("in_delivery", delivery.epoch)
        if not self.is_keyed:
            tables.append(changes, path, self.application, delivery.epoch)
            return
        key = key_of(self.sink, self.schema)
        rows = one_per_key(self.sink, changes, key)
        try:
            tables.merge(rows, path, key, self.application, delivery.epoch)
        except tables.UnexpectedRowError as row:
            raise unexpected_rows(self.sink, path, f"epoch {delivery.epoch}", values=f"the row of key {row}") from None
        finally:
            rows.unpersist()

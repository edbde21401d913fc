"""The Delta sink: appends changes, or maintains one row per key with MERGE. Delivery is exactly once.

The epoch is the version of a Delta transaction with an application id of the sink. Delta skips an epoch that is
delivered again, in the commit that would write it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.connectors.delivery import Delivery, absolute
from rejoinder.connectors.delta.spark import tables
from rejoinder.connectors.sink_key import key_of
from rejoinder.connectors.spark.keyed_changes import TableTarget, check_columns, one_per_key, unexpected_rows
from rejoinder.faults import reach


@dataclass(frozen=True)
class DeltaTarget(TableTarget):
    """The table at `path`. The first delivery creates it if it does not exist."""

    @property
    def application(self) -> str:
        """The application id of the sink in Delta transactions."""
        return f"rejoinder-{self.identity}"

    @property
    def path(self) -> str:
        """The absolute path of the table."""
        return absolute(self.sink.options["path"])

    def check(self) -> None:
        """Raise `SinkFailed` if the table exists and lacks a column."""
        tables.prepare(self.session)
        path = self.path
        if tables.is_table(self.session, path):
            check_columns(self.sink, path, self.columns.names, tables.columns_of(self.session, path))

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

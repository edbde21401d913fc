"""The JDBC sink: writes the rows of an epoch and its number to a database in one transaction. Exactly once.

Executors write the changes to a staging table of the sink. Then one transaction on the driver copies them to the table
and stores the epoch in `rejoinder_epochs` in the same database. An attempt that fails before its commit has no effect.
With mode 'upsert' the table has one row per key. The transaction checks that rows to replace exist and that rows to
insert do not. So a table that others change, or a key that is not unique, is detected before a row is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.connectors.delivery import Delivery
from rejoinder.connectors.jdbc.spark.connections import Connection, DatabaseError, fill, full_options, parts_of
from rejoinder.connectors.sink_key import key_of
from rejoinder.connectors.spark.keyed_changes import (
    ACT,
    DELETED,
    INSERTED,
    TableTarget,
    check_columns,
    one_per_key,
    quoted_name,
    unexpected_rows,
)
from rejoinder.errors import SinkFailed
from rejoinder.faults import reach
from rejoinder.host.entropy import token
from rejoinder.ir.type_names import spark_name
from rejoinder.secret_options import redacted, resolved, scrubbed

EPOCHS = "rejoinder_epochs"
SINK_OPTIONS = ("from", "mode", "key")
ATTEMPT = "_attempt"


@dataclass(frozen=True)
class JdbcTarget(TableTarget):
    """The table `dbtable`, which must exist."""

    @property
    def table(self) -> str:
        """The table as the user wrote it."""
        return self.sink.options["dbtable"]

    def _table(self, connection: Connection) -> str:
        """Return the table with each part quoted for the database."""
        return ".".join(connection.part(part) for part in parts_of(self.table))

    def check(self) -> None:
        """Raise `SinkFailed` if the database cannot be reached, or the table does not exist or lacks a column."""
        with self._connected() as connection:
            try:
                actual = list(connection.columns(self._table(connection)))
            except DatabaseError as missing:
                columns = ", ".join(f"{field.name} {spark_name(field.type)}" for field in self.columns)
                raise SinkFailed(
                    f"table `{self.table}` of sink `{self.sink.name}` cannot be read",
                    detail=scrubbed(str(missing), self.sink.options),
                    hint=f"create it with these columns, in the types of the database: {columns}",
                ) from None
        check_columns(self.sink, self.table, self.columns.names, actual)

    def delivered(self) -> int | None:
        """Return the last committed epoch of the sink; None if there is none."""
        with self._connected() as connection:
            return self._stored_epoch(connection)

    def deliver(self, delivery: Delivery) -> None:
        """Fill the staging table on the executors, then copy it in one transaction. Raises `SinkFailed`."""
        with self._connected() as connection:  # connect first, so that an unreachable database fails at once
            staging = self._beside(connection, f"rejoinder_{self.identity}")
            changes = delivery.whole()
            rows = one_per_key(self.sink, changes, key_of(self.sink, self.schema)) if self.is_keyed else changes
            attempt = token(8)
            staged = self._staged()
            staging_rows = rows.selectExpr(
                *(f"{quoted_name(name)} AS {column}" for name, column in staged.items()), f"'{attempt}' AS {ATTEMPT}"
            )
            fill(staging_rows, staging, self._options(), self._types(connection))
            count = rows.count()
            rows.unpersist()
            reach("in_delivery", delivery.epoch)
            self._check_staging(connection, staging, attempt, count)
            if self._store_epoch(connection, delivery.epoch):
                if self.is_keyed:
                    self._merge(connection, staging, delivery.epoch)
                else:
                    self._append(connection, staging)
            connection.commit()
            connection.update(f"DROP TABLE {staging}")
            connection.commit()

    def _check_staging(self, connection: Connection, staging: str, attempt: str, count: int) -> None:
        """Raise `SinkFailed` if a second driver has written to the staging table. Reading locks it until the commit."""
        column = connection.quoted(ATTEMPT)
        own = connection.number(f"SELECT COUNT(*) FROM {staging} WHERE {column} = '{attempt}'")
        total = connection.number(f"SELECT COUNT(*) FROM {staging}")
        if not own == total == count:
            raise SinkFailed(
                f"another process writes to the staging table of sink `{self.sink.name}`",
                detail=f"{staging}: {count} row(s) were written, {total} were found, {own} of them ours",
                hint="run one driver per state; stop the other one, and run again",
            )

    def _store_epoch(self, connection: Connection, epoch: int) -> bool:
        """Store the epoch in the transaction. Returns False if it is stored already."""
        table = self._beside(connection, EPOCHS)
        stored = self._stored_epoch(connection)
        if stored is None:
            if not connection.has_table(self._qualifiers(), EPOCHS):
                columns = "sink VARCHAR(64) NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL"
                connection.update(f"CREATE TABLE {table} ({columns})")
            connection.update(f"INSERT INTO {table} (sink, epoch) VALUES ('{self.identity}', {epoch})")
            return True
        changed = connection.update(
            f"UPDATE {table} SET epoch = {epoch} WHERE sink = '{self.identity}' AND epoch < {epoch}"
        )
        return changed == 1

    def _stored_epoch(self, connection: Connection) -> int | None:
        """Return the stored epoch of the sink; None if it has none, or the table of epochs does not exist yet.

        Any other failure is raised: taken for "no epoch", it would deliver all epochs again.
        """
        try:
            return connection.number(
                f"SELECT epoch FROM {self._beside(connection, EPOCHS)} WHERE sink = '{self.identity}'"
            )
        except DatabaseError:
            connection.rollback()  # some databases refuse statements after one that failed
            if connection.has_table(self._qualifiers(), EPOCHS):
                raise
            return None

    def _append(self, connection: Connection, staging: str) -> None:
        table, columns = self._table(connection), self._table_columns(connection)
        connection.update(f"INSERT INTO {table} ({columns}) SELECT {self._staging_columns(connection)} FROM {staging}")

    def _merge(self, connection: Connection, staging: str, epoch: int) -> None:
        """Delete removed and replaced rows, then insert new ones. Raises `SinkFailed` if the table has other rows."""
        pairs, table = self._pairs(connection, key_of(self.sink, self.schema)), self._table(connection)
        staged = self._staged()
        same = " AND ".join(
            _same(f"s.{connection.quoted(staged[name])}", f"{table}.{actual}") for name, actual in pairs
        )
        act = connection.quoted(staged[ACT])

        def matching(condition: str) -> str:
            return f"EXISTS (SELECT 1 FROM {staging} s WHERE s.{act} {condition} AND {same})"

        present = connection.number(f"SELECT COUNT(*) FROM {table} WHERE {matching(f'= {INSERTED}')}")
        expected = connection.number(f"SELECT COUNT(*) FROM {staging} WHERE {act} <> {INSERTED}")
        removed = connection.update(f"DELETE FROM {table} WHERE {matching(f'<> {INSERTED}')}")
        if present or removed != expected:
            raise unexpected_rows(
                self.sink,
                self.table,
                f"epoch {epoch}: {present} row(s) to insert exist already; "
                f"of {expected} row(s) to replace or delete {removed} exist",
            )
        connection.update(
            f"INSERT INTO {table} ({self._table_columns(connection)}) "
            f"SELECT {self._staging_columns(connection)} FROM {staging} WHERE {act} <> {DELETED}"
        )

    def _pairs(self, connection: Connection, names: tuple[str, ...] | list[str]) -> list[tuple[str, str]]:
        """Return columns of the view with the quoted columns of the table. Their case may differ."""
        actual = {name.lower(): name for name in connection.columns(self._table(connection))}
        return [(name, connection.quoted(actual[name.lower()])) for name in names]

    def _table_columns(self, connection: Connection) -> str:
        return ", ".join(actual for _, actual in self._pairs(connection, self.columns.names))

    def _staging_columns(self, connection: Connection) -> str:
        staged = self._staged()
        return ", ".join(connection.quoted(staged[name]) for name in self.columns.names)

    def _staged(self) -> dict[str, str]:
        """Return the columns of the staging table by column of the view. Spark does not quote all names correctly."""
        names = [*self.columns.names, *([ACT] if self.is_keyed else [])]
        return {name: f"c{number}" for number, name in enumerate(names)}

    def _types(self, connection: Connection) -> dict[str, str | None]:
        """Return the types of staging columns that must equal those of the table, so that keys can be compared."""
        actual = {name.lower(): kind for name, kind in connection.columns(self._table(connection)).items()}
        kinds = {field.name: field.type for field in self.columns}
        types = {
            column: actual.get(name.lower())
            for name, column in self._staged().items()
            if name in kinds and (pa.types.is_string(kinds[name]) or pa.types.is_decimal(kinds[name]))
        }
        return {**types, ATTEMPT: "VARCHAR(64)"}

    def _beside(self, connection: Connection, name: str) -> str:
        """Return a name qualified with the schema of the table."""
        return ".".join([*(connection.part(part) for part in self._qualifiers()), name])

    def _qualifiers(self) -> list[str]:
        """Return the parts of the table's name before the last one: its schema, if it is given."""
        return parts_of(self.table)[:-1]

    def _options(self) -> dict[str, str]:
        options = {name: value for name, value in self.sink.options.items() if name not in SINK_OPTIONS}
        return full_options(self.session, resolved(f"sink `{self.sink.name}`", options))

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Open a connection for the block. Work that is not committed is rolled back. Raises `SinkFailed`."""
        options = self._options()
        try:
            connection = Connection(self.session, options)
        except DatabaseError as failure:
            raise SinkFailed(
                f"the database of sink `{self.sink.name}` cannot be reached",
                detail=scrubbed(f"{redacted(self.sink.options)['url']}: {failure}", self.sink.options),
                hint="start it, or correct url, user and password in OPTIONS; the flow continues from where it was",
            ) from None
        try:
            yield connection
        finally:
            connection.close()


def _same(here: str, there: str) -> str:
    """Return SQL for null-safe equality that every database supports."""
    return f"({here} = {there} OR ({here} IS NULL AND {there} IS NULL))"

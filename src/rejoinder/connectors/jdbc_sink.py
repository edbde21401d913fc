"""A table of a database as a sink: the rows of an epoch and its number in one transaction.

Executors write the changes into a staging table of the sink's own. Then one transaction on the driver brings them over
and notes the epoch in `rejoinder_epochs`, which is in the database for this: what dies before its commit has not
happened. With mode 'upsert' the table has a row per key; that the rows to replace are there, and the new ones are not,
is checked, so that a table that others change, or a key that is none, is noticed before anything is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from rejoinder.connectors.delivery import DELIVERED_COLUMNS, Delivery
from rejoinder.connectors.delta_sink import one_per_key, other_rows, refuse_other_columns
from rejoinder.errors import SinkFailed
from rejoinder.exchange.connectors.jdbc_connections import Connection, DatabaseError, fill, full_options, parts_of
from rejoinder.exchange.connectors.keyed_changes import ACT, DELETED, INSERTED, quoted_name
from rejoinder.faults import reach
from rejoinder.host.entropy import token
from rejoinder.ir.catalog import Sink
from rejoinder.secret_options import redacted, resolved, scrubbed
from rejoinder.sql.definitions.sink_definition import key_of
from rejoinder.sql.types.spark_types import spark_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCHS = "rejoinder_epochs"
OF_SINKS = ("from", "mode", "key")
ATTEMPT = "_attempt"


@dataclass(frozen=True)
class JdbcTarget:
    """The table `dbtable`, which must be there."""

    sink: Sink
    identity: str
    schema: pa.Schema
    session: SparkSession
    remembers: ClassVar[bool] = True

    @property
    def table(self) -> str:
        """The table, as the user writes it."""
        return self.sink.options["dbtable"]

    def _table(self, connection: Connection) -> str:
        """The table as the database wants it: quoted, never pasted."""
        return ".".join(connection.part(part) for part in parts_of(self.table))

    @property
    def is_keyed(self) -> bool:
        """Whether the table has a row per key, rather than changes."""
        return self.sink.options.get("mode", "append") == "upsert"

    def check(self) -> None:
        """Refuse a database that cannot be reached, and a table that is not there or has other columns."""
        with self._connected() as connection:
            try:
                there = list(connection.columns(self._table(connection)))
            except DatabaseError as missing:
                columns = ", ".join(f"{field.name} {spark_name(field.type)}" for field in self._columns())
                raise SinkFailed(
                    f"table `{self.table}` of sink `{self.sink.name}` cannot be read",
                    detail=scrubbed(str(missing), self.sink.options),
                    hint=f"create it with these columns, in the types of the database: {columns}",
                ) from None
        refuse_other_columns(self.sink, self.table, self._columns().names, there)

    def delivered(self) -> int | None:
        """The last epoch that a transaction has brought."""
        with self._connected() as connection:
            try:
                return connection.number(
                    f"SELECT epoch FROM {self._beside(connection, EPOCHS)} WHERE sink = '{self.identity}'"
                )
            except DatabaseError:
                return None  # the first transaction makes the table

    def deliver(self, delivery: Delivery) -> None:
        """Fill the staging table on the executors, then bring it over in one transaction."""
        with self._connected() as connection:  # first, since it says at once if there is nobody
            staging = self._beside(connection, f"rejoinder_{self.identity}")
            changes = delivery.whole()
            rows = one_per_key(self.sink, changes, key_of(self.sink, self.schema)) if self.is_keyed else changes
            attempt = token(8)
            staged = self._staged()
            kept = rows.selectExpr(
                *(f"{quoted_name(name)} AS {column}" for name, column in staged.items()), f"'{attempt}' AS {ATTEMPT}"
            )
            fill(kept, staging, self._options(), self._types(connection))
            count = rows.count()
            rows.unpersist()
            reach("in_delivery", delivery.epoch)
            self._refuse_others(connection, staging, attempt, count)
            if self._note(connection, delivery.epoch):
                if self.is_keyed:
                    self._merge(connection, staging, delivery.epoch)
                else:
                    self._append(connection, staging)
            connection.commit()
            connection.update(f"DROP TABLE {staging}")
            connection.commit()

    def _refuse_others(self, connection: Connection, staging: str, attempt: str, count: int) -> None:
        """See that the staging table is what this attempt wrote: a second driver may be at work. Reading locks it."""
        column = connection.quoted(ATTEMPT)
        found = connection.number(f"SELECT COUNT(*) FROM {staging} WHERE {column} = '{attempt}'")
        there = connection.number(f"SELECT COUNT(*) FROM {staging}")
        if not found == there == count:
            raise SinkFailed(
                f"somebody else writes to the staging table of sink `{self.sink.name}`",
                detail=f"{staging}: {count} row(s) were written, {there} were found, {found} of them ours",
                hint="run one driver per state; stop the other one, and run again",
            )

    def _note(self, connection: Connection, epoch: int) -> bool:
        """Note the epoch in the transaction; False if it is there already."""
        table = self._beside(connection, EPOCHS)
        try:
            known = connection.number(f"SELECT epoch FROM {table} WHERE sink = '{self.identity}'")
        except DatabaseError:
            connection.rollback()
            connection.update(f"CREATE TABLE {table} (sink VARCHAR(64) NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL)")
            known = None
        if known is None:
            connection.update(f"INSERT INTO {table} (sink, epoch) VALUES ('{self.identity}', {epoch})")
            return True
        changed = connection.update(
            f"UPDATE {table} SET epoch = {epoch} WHERE sink = '{self.identity}' AND epoch < {epoch}"
        )
        return changed == 1

    def _append(self, connection: Connection, staging: str) -> None:
        table, there, here = self._table(connection), self._there(connection), self._here(connection)
        connection.update(f"INSERT INTO {table} ({there}) SELECT {here} FROM {staging}")

    def _merge(self, connection: Connection, staging: str, epoch: int) -> None:
        """Take out the rows that are gone or replaced, put in the new ones; both must find the table as expected."""
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
            raise other_rows(
                self.sink,
                self.table,
                f"epoch {epoch}: {present} row(s) to insert exist already; "
                f"of {expected} row(s) to replace or delete {removed} exist",
            )
        connection.update(
            f"INSERT INTO {table} ({self._there(connection)}) SELECT {self._here(connection)} FROM {staging} "
            f"WHERE {act} <> {DELETED}"
        )

    def _columns(self) -> pa.Schema:
        return self.schema if self.is_keyed else pa.schema([*self.schema, *DELIVERED_COLUMNS])

    def _pairs(self, connection: Connection, names: tuple[str, ...] | list[str]) -> list[tuple[str, str]]:
        """Columns of the view with those of the table, quoted, whose case may differ."""
        there = {name.lower(): name for name in connection.columns(self._table(connection))}
        return [(name, connection.quoted(there[name.lower()])) for name in names]

    def _there(self, connection: Connection) -> str:
        return ", ".join(actual for _, actual in self._pairs(connection, self._columns().names))

    def _here(self, connection: Connection) -> str:
        staged = self._staged()
        return ", ".join(connection.quoted(staged[name]) for name in self._columns().names)

    def _staged(self) -> dict[str, str]:
        """The columns of the staging table, by what they hold: Spark does not write every name as it should."""
        names = [*self._columns().names, *([ACT] if self.is_keyed else [])]
        return {name: f"c{number}" for number, name in enumerate(names)}

    def _types(self, connection: Connection) -> dict[str, str | None]:
        """The types of columns of the staging table that have to be those of the table, so that keys compare."""
        there = {name.lower(): kind for name, kind in connection.columns(self._table(connection)).items()}
        kinds = {field.name: field.type for field in self._columns()}
        types = {
            column: there.get(name.lower())
            for name, column in self._staged().items()
            if name in kinds and (pa.types.is_string(kinds[name]) or pa.types.is_decimal(kinds[name]))
        }
        return {**types, ATTEMPT: "VARCHAR(64)"}

    def _beside(self, connection: Connection, name: str) -> str:
        """A name in the schema of the table."""
        return ".".join([*(connection.part(part) for part in parts_of(self.table)[:-1]), name])

    def _options(self) -> dict[str, str]:
        given = {name: value for name, value in self.sink.options.items() if name not in OF_SINKS}
        return full_options(self.session, resolved(f"sink `{self.sink.name}`", given))

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A connection for a while; what is not committed by then is forgotten."""
        options = self._options()
        try:
            connection = Connection(self.session, options)
        except DatabaseError as failure:
            raise SinkFailed(
                f"the database of sink `{self.sink.name}` cannot be reached",
                detail=scrubbed(f"{redacted(self.sink.options)['url']}: {failure}", self.sink.options),
                hint="start it, or correct url, user and password in OPTIONS; the flow goes on from where it was",
            ) from None
        try:
            yield connection
        finally:
            connection.close()


def _same(here: str, there: str) -> str:
    """Equal, or both NULL, in the words that every database knows."""
    return f"({here} = {there} OR ({here} IS NULL AND {there} IS NULL))"

"""Databases through JDBC: connections of the driver's own, for transactions, and tables that executors fill.

Drivers are found as Spark finds them; that of PostgreSQL is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from rejoinder.exchange.session.jars import POSTGRESQL, provide

DRIVERS = {"jdbc:postgresql:": ("org.postgresql.Driver", POSTGRESQL)}
# How long an address that does not answer is waited for.
PATIENCE = {"jdbc:postgresql:": {"connectTimeout": "5", "loginTimeout": "5"}}

Options = Mapping[str, str]
LONGEST_TEXT, LARGEST_DECIMAL = 32_672, 38  # of types that databases and Spark have
_TEXTS, _DECIMALS = (-15, -9, 1, 12), (2, 3)  # java.sql.Types
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_$]*")
_PARTS = re.compile(r'(?:^|(?<=\.))(?:"(?:[^"]|"")*"(?=\.|$)|`(?:[^`]|``)*`(?=\.|$)|\[[^\]]*\](?=\.|$)|[^.]+)')


def full_options(session: SparkSession, options: Options) -> dict[str, str]:
    """The options with the driver's class, made usable, and a limit to waiting."""
    url = options["url"]
    full = dict(options)
    for prefix, (driver, package) in DRIVERS.items():
        if url.startswith(prefix):
            if "driver" not in full:
                provide(session, package)
                full["driver"] = driver
            full = {**PATIENCE.get(prefix, {}), **full}
    return full


def parts_of(table: str) -> list[str]:
    """The parts of a table's name, at the dots outside of quotes.

    >>> parts_of('shop.people'), parts_of('"a.b"."c""d"'), parts_of('t; DROP TABLE x')
    (['shop', 'people'], ['"a.b"', '"c""d"'], ['t; DROP TABLE x'])
    """
    return _PARTS.findall(table)


class Connection:
    """A connection of the driver's, without auto-commit. Errors of the database are told in its words."""

    def __init__(self, session: SparkSession, options: Options) -> None:
        jvm: Any = session._jvm
        given = jvm.java.util.HashMap()
        for name, value in options.items():
            given.put(name, value)
        parsed = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(
            jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given)
        )
        self._dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(options["url"])
        self._connection = _told(lambda: self._dialect.createConnectionFactory(parsed).apply(-1))
        self._connection.setAutoCommit(False)
        metadata = self._connection.getMetaData()
        self._is_upper = bool(metadata.storesUpperCaseIdentifiers())
        self._is_lower = bool(metadata.storesLowerCaseIdentifiers())

    def quoted(self, name: str) -> str:
        """A name as this database wants it, with its quote written twice where the name has one: Spark's does not."""
        frame = str(self._dialect.quoteIdentifier("x"))
        return f"{frame[0]}{name.replace(frame[-1], frame[-1] * 2)}{frame[-1]}"

    def part(self, part: str) -> str:
        """A part of a table's name, quoted: a plain one in the case that the database gives it, reserved or not."""
        is_quoted = len(part) > 1 and part[0] + part[-1] in ('""', "``", "[]")
        if is_quoted:
            return self.quoted(part[1:-1].replace(part[-1] * 2, part[-1]))
        if not _PLAIN.fullmatch(part):
            return self.quoted(part)
        return self.quoted(part.upper() if self._is_upper else part.lower() if self._is_lower else part)

    def columns(self, table: str) -> dict[str, str | None]:
        """The columns of a table, each with its type if that is a short text or a decimal. Raises if there is none."""
        statement = self._connection.createStatement()
        try:
            meta = _told(lambda: statement.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0").getMetaData())
            return {str(meta.getColumnName(at)): _type_of(meta, at) for at in range(1, meta.getColumnCount() + 1)}
        finally:
            statement.close()

    def update(self, sql: str) -> int:
        """Run a statement; the number of rows that it changed."""
        statement = self._connection.createStatement()
        try:
            return int(_told(lambda: statement.executeUpdate(sql)))
        finally:
            statement.close()

    def number(self, sql: str) -> int | None:
        """The one number that a query gives; None if there is no row."""
        statement = self._connection.createStatement()
        try:
            rows = _told(lambda: statement.executeQuery(sql))
            return int(rows.getLong(1)) if rows.next() else None
        finally:
            statement.close()

    def commit(self) -> None:
        """Make the transaction's changes last."""
        _told(self._connection.commit)

    def rollback(self) -> None:
        """Forget the transaction's changes."""
        _told(self._connection.rollback)

    def close(self) -> None:
        """Let the connection go. What is not committed is rolled back: some databases do not close before that."""
        with suppress(DatabaseError):  # it may be lost already
            self.rollback()
        self._connection.close()


class DatabaseError(Exception):
    """What a database, or the way to it, says; for the layers above to explain. `state` is its SQLSTATE, if any."""

    def __init__(self, text: str, state: str | None = None) -> None:
        super().__init__(text)
        self.state = state

    @property
    def kind(self) -> str | None:
        """What went wrong, without a word of the database's, which may quote rows; None if it speaks of no row."""
        if self.state is not None and self.state[:2] in _WITHOUT_ROWS:
            return None
        meaning = _WITH_ROWS.get((self.state or "")[:2], "the database refused to take the rows")
        return meaning if self.state is None else f"{meaning} (SQLSTATE {self.state})"


# Classes of SQLSTATE. Connections, logins, names, rights, transactions, resources; X0 and XJ are Derby's.
_WITHOUT_ROWS = ("08", "0A", "25", "28", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "X0", "XJ")
_WITH_ROWS = {"22": "a value does not fit its column", "23": "a constraint of the table does not allow a row"}


def _told(act: Any) -> Any:
    try:
        return act()
    except Py4JJavaError as failure:
        cause = failure.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise DatabaseError(str(cause.getMessage() or cause.toString()), _state_of(cause)) from None


def _state_of(cause: Any) -> str | None:
    """The SQLSTATE of an exception that has one."""
    try:
        state = cause.getSQLState()
    except (Py4JError, TypeError):
        return None
    return None if state is None else str(state)


def _type_of(meta: Any, at: int) -> str | None:
    """A type that a copy of the column must have: Spark would make texts that are too long to be compared of it."""
    kind, size = int(meta.getColumnType(at)), int(meta.getPrecision(at))
    if kind in _TEXTS and 0 < size <= LONGEST_TEXT:
        return f"VARCHAR({size})"
    if kind in _DECIMALS and 0 < size <= LARGEST_DECIMAL:
        return f"DECIMAL({size},{int(meta.getScale(at))})"
    return None


def fill(rows: DataFrame, table: str, options: Options, types: Mapping[str, str | None]) -> None:
    """Replace a table by these rows, written by the executors; `types` are those of columns, where one is needed."""
    writer = rows.write.format("jdbc").mode("overwrite").options(**options)
    needed = ", ".join(f"`{name}` {kind}" for name, kind in types.items() if kind is not None)
    if needed:
        writer = writer.option("createTableColumnTypes", needed)
    _told(lambda: writer.option("dbtable", table).save())

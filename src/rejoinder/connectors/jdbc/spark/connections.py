"""Databases through JDBC: connections from the Spark driver, for transactions, and tables that executors write.

JDBC drivers are found as Spark finds them; that of PostgreSQL is downloaded.
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
# Timeouts, in seconds, for an address that does not answer.
PATIENCE = {"jdbc:postgresql:": {"connectTimeout": "5", "loginTimeout": "5"}}

Options = Mapping[str, str]
LONGEST_TEXT, LARGEST_DECIMAL = 32_672, 38  # of types that databases and Spark have
_TEXTS, _DECIMALS = (-15, -9, 1, 12), (2, 3)  # java.sql.Types
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_$]*")
_PARTS = re.compile(r'(?:^|(?<=\.))(?:"(?:[^"]|"")*"(?=\.|$)|`(?:[^`]|``)*`(?=\.|$)|\[[^\]]*\](?=\.|$)|[^.]+)')


def full_options(session: SparkSession, options: Options) -> dict[str, str]:
    """Return the options with the class of the JDBC driver, which is provided if needed, and timeouts."""
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
    """Return the parts of a table name, split at the dots outside of quotes.

    >>> parts_of('shop.people'), parts_of('"a.b"."c""d"'), parts_of('t; DROP TABLE x')
    (['shop', 'people'], ['"a.b"', '"c""d"'], ['t; DROP TABLE x'])
    """
    return _PARTS.findall(table)


class Connection:
    """A connection from the Spark driver, without auto-commit. Its methods raise `DatabaseError`."""

    def __init__(self, session: SparkSession, options: Options) -> None:
        jvm: Any = session._jvm
        settings = jvm.java.util.HashMap()
        for name, value in options.items():
            settings.put(name, value)
        parsed = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(
            jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(settings)
        )
        self._dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(options["url"])
        self._connection = _translate_errors(lambda: self._dialect.createConnectionFactory(parsed).apply(-1))
        self._connection.setAutoCommit(False)
        metadata = self._connection.getMetaData()
        self._is_upper = bool(metadata.storesUpperCaseIdentifiers())
        self._is_lower = bool(metadata.storesLowerCaseIdentifiers())

    def quoted(self, name: str) -> str:
        """Return a name quoted for this database. Unlike Spark's dialects, this escapes a quote within the name."""
        frame = str(self._dialect.quoteIdentifier("x"))
        return f"{frame[0]}{name.replace(frame[-1], frame[-1] * 2)}{frame[-1]}"

    def part(self, part: str) -> str:
        """Return a part of a table name, quoted; an unquoted name in the case in which the database stores it."""
        if _is_quoted(part):
            return self.quoted(_unquoted(part))
        if not _PLAIN.fullmatch(part):
            return self.quoted(part)
        return self.quoted(part.upper() if self._is_upper else part.lower() if self._is_lower else part)

    def columns(self, table: str) -> dict[str, str | None]:
        """Return the columns of a table, with the type of short strings and decimals. Raises if it does not exist."""
        statement = self._connection.createStatement()
        try:
            meta = _translate_errors(lambda: statement.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0").getMetaData())
            numbers = range(1, meta.getColumnCount() + 1)
            return {str(meta.getColumnName(number)): _type_of(meta, number) for number in numbers}
        finally:
            statement.close()

    def has_table(self, qualifiers: list[str], name: str) -> bool:
        """Whether a table exists: in the schema that is the last qualifier, or in the current one.

        Asks the catalog of the database. Cases of names are ignored. Some databases list schemas as catalogs.
        """
        schema = _unquoted(qualifiers[-1]) if qualifiers else self._current_schema()
        for pattern in (name, name.upper()):
            tables = _translate_errors(
                lambda pattern=pattern: self._connection.getMetaData().getTables(None, None, pattern, None)
            )
            while _translate_errors(tables.next):
                places = [str(tables.getString(column)).lower() for column in ("TABLE_SCHEM", "TABLE_CAT")]
                if schema is None or schema.lower() in places:
                    return True
        return False

    def _current_schema(self) -> str | None:
        name = _translate_errors(self._connection.getSchema) or _translate_errors(self._connection.getCatalog)
        return None if name is None else str(name)

    def update(self, sql: str) -> int:
        """Run a statement and return the number of rows that it changed."""
        statement = self._connection.createStatement()
        try:
            return int(_translate_errors(lambda: statement.executeUpdate(sql)))
        finally:
            statement.close()

    def number(self, sql: str) -> int | None:
        """Return the number that a query selects; None if there is no row."""
        statement = self._connection.createStatement()
        try:
            rows = _translate_errors(lambda: statement.executeQuery(sql))
            return int(rows.getLong(1)) if rows.next() else None
        finally:
            statement.close()

    def commit(self) -> None:
        """Commit the transaction."""
        _translate_errors(self._connection.commit)

    def rollback(self) -> None:
        """Roll back the transaction."""
        _translate_errors(self._connection.rollback)

    def close(self) -> None:
        """Roll back, since some databases refuse to close with an open transaction, and close the connection."""
        with suppress(DatabaseError):  # the connection may be lost
            self.rollback()
        self._connection.close()


class DatabaseError(Exception):
    """An error of a database or its connection, which the layers above explain. `state` is its SQLSTATE, if any."""

    def __init__(self, text: str, state: str | None = None) -> None:
        super().__init__(text)
        self.state = state

    @property
    def kind(self) -> str | None:
        """The kind of error, without the message of the database, which may quote rows; None if it quotes none."""
        if self.state is not None and self.state[:2] in _WITHOUT_ROWS:
            return None
        meaning = _WITH_ROWS.get((self.state or "")[:2], "the database rejected the rows")
        return meaning if self.state is None else f"{meaning} (SQLSTATE {self.state})"


# Classes of SQLSTATE. Connections, logins, names, rights, transactions, resources; X0 and XJ are Derby's.
_WITHOUT_ROWS = ("08", "0A", "25", "28", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "X0", "XJ")
_WITH_ROWS = {"22": "a value does not fit its column", "23": "a row violates a constraint of the table"}


def _is_quoted(part: str) -> bool:
    return len(part) > 1 and part[0] + part[-1] in ('""', "``", "[]")


def _unquoted(part: str) -> str:
    return part[1:-1].replace(part[-1] * 2, part[-1]) if _is_quoted(part) else part


def _translate_errors(act: Any) -> Any:
    try:
        return act()
    except Py4JJavaError as failure:
        cause = failure.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise DatabaseError(str(cause.getMessage() or cause.toString()), _state_of(cause)) from None


def _state_of(cause: Any) -> str | None:
    """Return the SQLSTATE of an exception; None if it has none."""
    try:
        state = cause.getSQLState()
    except (Py4JError, TypeError):
        return None
    return None if state is None else str(state)


def _type_of(meta: Any, number: int) -> str | None:
    """Return the type that a copy of the column needs: by default Spark creates strings too long for a comparison."""
    kind, size = int(meta.getColumnType(number)), int(meta.getPrecision(number))
    if kind in _TEXTS and 0 < size <= LONGEST_TEXT:
        return f"VARCHAR({size})"
    if kind in _DECIMALS and 0 < size <= LARGEST_DECIMAL:
        return f"DECIMAL({size},{int(meta.getScale(number))})"
    return None


def fill(rows: DataFrame, table: str, options: Options, types: Mapping[str, str | None]) -> None:
    """Replace a table by these rows, which the executors write; `types` sets the types of columns that are not None."""
    writer = rows.write.format("jdbc").mode("overwrite").options(**options)
    declared = ", ".join(f"`{name}` {kind}" for name, kind in types.items() if kind is not None)
    if declared:
        writer = writer.option("createTableColumnTypes", declared)
    _translate_errors(lambda: writer.option("dbtable", table).save())

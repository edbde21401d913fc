"""Databases through JDBC: connections of the driver's own, for transactions, and tables that executors fill.

Drivers are found as Spark finds them; that of PostgreSQL is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from rejoinder.exchange.packages import POSTGRESQL, provide

DRIVERS = {"jdbc:postgresql:": ("org.postgresql.Driver", POSTGRESQL)}
# How long an address that does not answer is waited for.
PATIENCE = {"jdbc:postgresql:": {"connectTimeout": "5", "loginTimeout": "5"}}

Options = Mapping[str, str]
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

    def quoted(self, name: str) -> str:
        """A name as this database wants it, with its quote written twice where the name has one: Spark's does not."""
        frame = str(self._dialect.quoteIdentifier("x"))
        return f"{frame[0]}{name.replace(frame[-1], frame[-1] * 2)}{frame[-1]}"

    def part(self, part: str) -> str:
        """A part of a table's name: a plain one as it is, in the case that the database gives it; others quoted."""
        is_quoted = len(part) > 1 and part[0] + part[-1] in ('""', "``", "[]")
        if not is_quoted:
            return part if _PLAIN.fullmatch(part) else self.quoted(part)
        return self.quoted(part[1:-1].replace(part[-1] * 2, part[-1]))

    def columns(self, table: str) -> list[str]:
        """The columns of a table. Raises if there is none."""
        statement = self._connection.createStatement()
        try:
            meta = _told(lambda: statement.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0").getMetaData())
            return [str(meta.getColumnName(at)) for at in range(1, meta.getColumnCount() + 1)]
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
    """What a database, or the way to it, says; for the layers above to explain."""


def _told(act: Any) -> Any:
    try:
        return act()
    except Py4JJavaError as failure:
        cause = failure.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise DatabaseError(str(cause.getMessage() or cause.toString())) from None


def fill(rows: DataFrame, table: str, options: Options, texts: Sequence[str] = ()) -> None:
    """Replace a table by these rows, written by the executors; `texts` are columns with short texts of ours."""
    writer = rows.write.format("jdbc").mode("overwrite").options(**options)
    if texts:  # or a database may make a type of them that it cannot compare
        writer = writer.option("createTableColumnTypes", ", ".join(f"`{name}` VARCHAR(64)" for name in texts))
    _told(lambda: writer.option("dbtable", table).save())

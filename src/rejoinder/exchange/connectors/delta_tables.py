"""Delta tables as sinks and change feeds: writes that Delta itself does once, by application id and version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rejoinder.errors import MissingInput
from rejoinder.exchange.connectors.keyed_changes import ACT, DELETED, INSERTED
from rejoinder.exchange.session.jars import DELTA, provide

CATALOG = "spark.sql.catalog.spark_catalog"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
# Delta reads its own log with fifty tasks unless told otherwise, which is what a small epoch would wait for.
QUICK = {"spark.databricks.delta.snapshotPartitions": "2", "spark.sql.shuffle.partitions": "2"}
TRANSACTION = ("spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion")
UNEXPECTED = "rejoinder: the row of key "
FEED = {
    "startingversion": "startingVersion",
    "startingtimestamp": "startingTimestamp",
    "maxfilespertrigger": "maxFilesPerTrigger",
    "maxbytespertrigger": "maxBytesPerTrigger",
}


class UnexpectedRowError(Exception):
    """A table does not hold what a merge expects; for the layers above to explain."""


def prepare(session: SparkSession) -> None:
    """Make Delta usable in a session: its jars, and its catalog where none is set."""
    provide(session, DELTA)
    if session.conf.get(CATALOG, None) in (None, "builtin"):
        session.conf.set(CATALOG, DELTA_CATALOG)


def is_table(session: SparkSession, path: str) -> bool:
    """Whether there is a Delta table at a path."""
    jvm: Any = session._jvm
    with _settings(session, QUICK):
        return bool(jvm.io.delta.tables.DeltaTable.isDeltaTable(session._jsparkSession, path))


def columns_of(session: SparkSession, path: str) -> list[str]:
    """The columns of a table."""
    with _settings(session, QUICK):
        return list(session.read.format("delta").load(path).columns)


def last_version(session: SparkSession, path: str, application: str) -> int | None:
    """The last version that an application has written to a table; None if it never did."""
    jvm: Any = session._jvm
    none = jvm.scala.Option.empty()
    with _settings(session, QUICK):
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
        found = log.update(False, none, none).transactions().get(application)
    return int(found.get()) if found.isDefined() else None


def change_feed(session: SparkSession, name: str, options: Mapping[str, str], columns: Sequence[str]) -> DataFrame:
    """The changes of a table as a stream, with `_change_type`. Raises if there is no table, or it keeps no changes."""
    prepare(session)
    path = options["path"]
    if not is_table(session, path):
        raise MissingInput(
            f"there is no Delta table at `{path}` of `{name}`", hint="create it, or correct OPTIONS (path '…')"
        )
    jvm: Any = session._jvm
    with _settings(session, QUICK):
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
        kept = log.unsafeVolatileSnapshot().metadata().configuration().get("delta.enableChangeDataFeed")
    if not kept.isDefined() or str(kept.get()).lower() != "true":
        raise MissingInput(
            f"the Delta table at `{path}` of `{name}` keeps no change feed",
            detail="its property delta.enableChangeDataFeed is not true",
            hint=f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        )
    reader = session.readStream.format("delta").option("readChangeFeed", "true")
    for option, known in FEED.items():
        if option in options:
            reader = reader.option(known, options[option])
    feed = reader.load(path)
    there = {column.lower(): column for column in feed.columns}
    named = [there[column.lower()] for column in columns if column.lower() in there]  # what is missing is told later
    return feed.select(*[f"`{column}`" for column in named], "_change_type")


def append(changes: DataFrame, path: str, application: str, version: int) -> None:
    """Append rows, unless the application has written this version already."""
    with _settings(changes.sparkSession, QUICK):
        writer = changes.write.format("delta").mode("append")
        writer.option("txnAppId", application).option("txnVersion", str(version)).save(path)


def merge(rows: DataFrame, path: str, key: Sequence[str], application: str, version: int) -> None:
    """Bring a row per key to what it is now (`keyed_changes`), unless this version is written already.

    A row to insert must not be there, any other must be: else it raises `UnexpectedRowError`, and the table stays.
    """
    session = rows.sparkSession
    columns = [name for name in rows.columns if name not in (ACT, "_copies")]
    if not is_table(session, path):
        empty = session.createDataFrame([], rows.select(*[f"`{name}`" for name in columns]).schema)
        with _settings(session, QUICK):
            empty.write.format("delta").mode("append").save(path)
    jvm: Any = session._jvm
    table = jvm.io.delta.tables.DeltaTable.forPath(session._jsparkSession, path)
    on = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in key)
    values = {f"`{name}`": f"s.`{name}`" for name in columns}
    shown = "to_json(struct({}))".format(", ".join(f"s.`{name}`" for name in key))
    there, missing = (
        dict.fromkeys(values, f"raise_error('{UNEXPECTED}' || {shown} || ' {how}')")
        for how in ("exists already", "does not exist")
    )
    change = table.alias("t").merge(rows.alias("s")._jdf, on)
    change = change.whenMatched(f"s.{ACT} = {INSERTED}").updateExpr(there)
    change = change.whenMatched(f"s.{ACT} = {DELETED}").delete()
    change = change.whenMatched().updateExpr(values)
    change = change.whenNotMatched(f"s.{ACT} <> {INSERTED}").insertExpr(missing)
    change = change.whenNotMatched().insertExpr(values)
    with _settings(session, {**QUICK, TRANSACTION[0]: application, TRANSACTION[1]: str(version)}):
        try:
            change.execute()
        except Exception as failure:
            told = re.search(f"{UNEXPECTED}(.*)", str(failure))
            if told is None:
                raise
            raise UnexpectedRowError(told[1]) from None


@contextmanager
def quick(session: SparkSession) -> Iterator[None]:
    """Read logs of Delta with few tasks."""
    with _settings(session, QUICK):
        yield


@contextmanager
def _settings(session: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Settings of a session for a while."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)

"""Delta tables as sinks and change feeds. Delta makes writes idempotent by application id and version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rejoinder.connectors.spark.keyed_changes import ACT, DELETED, INSERTED
from rejoinder.errors import MissingInput
from rejoinder.exchange.session.jars import DELTA, provide

CATALOG = "spark.sql.catalog.spark_catalog"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
# By default Delta reads its own log with fifty tasks, which would dominate the time of a small epoch.
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
    """A table does not contain the rows that a MERGE expects; the layers above explain it."""


def prepare(session: SparkSession) -> None:
    """Add Delta to a session: its jars, and its catalog if none is set."""
    provide(session, DELTA)
    if session.conf.get(CATALOG, None) in (None, "builtin"):
        session.conf.set(CATALOG, DELTA_CATALOG)


def is_table(session: SparkSession, path: str) -> bool:
    """Whether a Delta table exists at a path."""
    jvm: Any = session._jvm
    with _settings(session, QUICK):
        return bool(jvm.io.delta.tables.DeltaTable.isDeltaTable(session._jsparkSession, path))


def columns_of(session: SparkSession, path: str) -> list[str]:
    """Return the columns of a table."""
    with _settings(session, QUICK):
        return list(session.read.format("delta").load(path).columns)


def last_version(session: SparkSession, path: str, application: str) -> int | None:
    """Return the last version that an application has written to a table; None if it has not."""
    jvm: Any = session._jvm
    none = jvm.scala.Option.empty()
    with _settings(session, QUICK):
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
        version = log.update(False, none, none).transactions().get(application)
    return int(version.get()) if version.isDefined() else None


def change_feed(session: SparkSession, name: str, options: Mapping[str, str], columns: Sequence[str]) -> DataFrame:
    """Return the changes of a table as a stream, with `_change_type`.

    Raises `MissingInput` if the table does not exist or has no change feed.
    """
    prepare(session)
    path = options["path"]
    if not is_table(session, path):
        raise MissingInput(
            f"there is no Delta table at `{path}` of `{name}`", hint="create it, or correct OPTIONS (path '…')"
        )
    jvm: Any = session._jvm
    with _settings(session, QUICK):
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
        enabled = log.unsafeVolatileSnapshot().metadata().configuration().get("delta.enableChangeDataFeed")
    if not enabled.isDefined() or str(enabled.get()).lower() != "true":
        raise MissingInput(
            f"the Delta table at `{path}` of `{name}` has no change feed",
            detail="its property delta.enableChangeDataFeed is not true",
            hint=f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        )
    reader = session.readStream.format("delta").option("readChangeFeed", "true")
    for option, spark_name in FEED.items():
        if option in options:
            reader = reader.option(spark_name, options[option])
    feed = reader.load(path)
    by_lower_case = {column.lower(): column for column in feed.columns}
    # A missing column is reported later, with the columns of the source.
    present = [by_lower_case[column.lower()] for column in columns if column.lower() in by_lower_case]
    return feed.select(*[f"`{column}`" for column in present], "_change_type")


def append(changes: DataFrame, path: str, application: str, version: int) -> None:
    """Append rows, unless the application has already written this version."""
    with _settings(changes.sparkSession, QUICK):
        writer = changes.write.format("delta").mode("append")
        writer.option("txnAppId", application).option("txnVersion", str(version)).save(path)


def merge(rows: DataFrame, path: str, key: Sequence[str], application: str, version: int) -> None:
    """MERGE a row per key (`keyed_changes`) into a table, unless the application has already written this version.

    Raises `UnexpectedRowError`, without a change of the table, if a row to insert exists, or another one does not.
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
    duplicate, missing = (
        dict.fromkeys(values, f"raise_error('{UNEXPECTED}' || {shown} || ' {fault}')")
        for fault in ("exists already", "does not exist")
    )
    change = table.alias("t").merge(rows.alias("s")._jdf, on)
    change = change.whenMatched(f"s.{ACT} = {INSERTED}").updateExpr(duplicate)
    change = change.whenMatched(f"s.{ACT} = {DELETED}").delete()
    change = change.whenMatched().updateExpr(values)
    change = change.whenNotMatched(f"s.{ACT} <> {INSERTED}").insertExpr(missing)
    change = change.whenNotMatched().insertExpr(values)
    with _settings(session, {**QUICK, TRANSACTION[0]: application, TRANSACTION[1]: str(version)}):
        try:
            change.execute()
        except Exception as failure:
            unexpected = re.search(f"{UNEXPECTED}(.*)", str(failure))
            if unexpected is None:
                raise
            raise UnexpectedRowError(unexpected[1]) from None


@contextmanager
def quick(session: SparkSession) -> Iterator[None]:
    """Let Delta read its logs with few tasks."""
    with _settings(session, QUICK):
        yield


@contextmanager
def _settings(session: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Set settings of a session, and restore them at the end."""
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

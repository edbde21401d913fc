"""Read a Delta table again up to a position of its change feed: the rows that the feed has added up to by then.

A feed that began with the rows of the table adds up to one version of the table, which is read as it was. A feed that
began at a version or a time adds up to the changes since then, which are read again. Either way Delta must still have
that version's log and files; `VACUUM` and log retention remove them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rejoinder.errors import MissingInput
from rejoinder.exchange.connectors.delta_tables import FEED, prepare, quick

CHANGE_TYPE = "_change_type"
_BASES = (-1, -100)  # Delta's index before the first file of a version, by the format of its offsets
_STARTS = ("startingversion", "startingtimestamp")


class NotReadableError(Exception):
    """A table cannot be read up to a position; its text says why."""


def last_version(session: SparkSession, path: str, offset: str) -> int:
    """The last version that a feed has read whole. Raises `NotReadableError` if it stopped within a version.

    An offset is the next version and no file of it, or a version and the last file of it that was read.
    """
    found = json.loads(offset)
    version, index = int(found["reservoirVersion"]), int(found["index"])
    if index in _BASES and not found.get("isStartingVersion"):
        return version - 1
    if found.get("isStartingVersion") or index + 1 < _files_in(session, path, version):
        raise NotReadableError(f"its last epoch ended within version {version} of the Delta table")
    return version


def _files_in(session: SparkSession, path: str, version: int) -> int:
    """How many files of a version a feed reads: those with changes, or else those that were added and removed."""
    actions = session.read.json(f"{path.rstrip('/')}/_delta_log/{version:020d}.json")
    counts = {name: F.count(name).alias(name) for name in ("cdc", "add", "remove") if name in actions.columns}
    row = actions.agg(*counts.values()).first()
    numbers = {} if row is None else row.asDict()
    return int(numbers.get("cdc", 0) or numbers.get("add", 0) + numbers.get("remove", 0))


def feed_until(session: SparkSession, options: Mapping[str, str], columns: Sequence[str], offset: str) -> DataFrame:
    """What a feed has added up to at an offset, with `_change_type`.

    Raises `NotReadableError` if Delta does not have all of it any more, and `MissingInput` if that cannot be found out
    now. Looks at the log of the table, and at the names of its files.
    """
    prepare(session)
    path = options["path"]
    try:
        with quick(session):
            _check_identity(session, path, offset)
            last = last_version(session, path, offset)
            frame = _frame(session, options, last)
            plan: Any = frame._jdf.queryExecution()
            plan.executedPlan()  # looks the versions up
            lost = _lost_files(session, frame)
    except NotReadableError:
        raise
    except Exception as failure:  # noqa: BLE001 - whatever Delta raises is told in our words
        if _is_final(failure):
            raise NotReadableError(f"Delta does not have its versions any more: {_said(failure)}") from None
        raise MissingInput(
            f"the Delta table at `{path}` cannot be looked at, to read it again",
            detail=_said(failure),
            hint="check the storage of the table, and run the statement again",
        ) from None
    if lost is not None:
        raise NotReadableError(f"file `{lost}` of version {last} of the Delta table no longer exists")
    there = {column.lower(): column for column in frame.columns}
    named = [there[column.lower()] for column in columns if column.lower() in there]
    return frame.select(*[f"`{column}`" for column in named], CHANGE_TYPE)


def _frame(session: SparkSession, options: Mapping[str, str], last: int) -> DataFrame:
    reader, path = session.read.format("delta"), options["path"]
    starts = {FEED[option]: options[option] for option in _STARTS if option in options}
    if not starts:
        return reader.option("versionAsOf", last).load(path).withColumn(CHANGE_TYPE, F.lit("insert"))
    if int(options.get("startingversion", 0)) > last:  # nothing was read yet
        empty = reader.option("versionAsOf", last).load(path).limit(0)
        return empty.withColumn(CHANGE_TYPE, F.lit("insert"))
    for option, value in starts.items():
        reader = reader.option(option, value)
    return reader.option("readChangeFeed", "true").option("endingVersion", last).load(path)


def _check_identity(session: SparkSession, path: str, offset: str) -> None:
    jvm: Any = session._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
    none = jvm.scala.Option.empty()
    identity = str(log.update(False, none, none).metadata().id())
    if identity != json.loads(offset).get("reservoirId"):
        raise NotReadableError(f"the Delta table at `{path}` is not the one that was read: it was created anew")


def _lost_files(session: SparkSession, frame: DataFrame) -> str | None:
    """A file of a snapshot that no longer exists. Of changes Delta lists none; then reading them says so."""
    jvm: Any = session._jvm
    settings = session._jsparkSession.sessionState().newHadoopConf()
    for name in frame.inputFiles():
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name))
        if not path.getFileSystem(settings).exists(path):
            return name
    return None


def _is_final(failure: BaseException) -> bool:
    """Whether Delta or Spark says that something does not exist, as opposed to a storage that fails for now."""
    found = re.search(r"\[DELTA_\w+|\bFileNotFoundException\b", str(failure))
    return isinstance(failure, AnalysisException) or found is not None


def _said(failure: BaseException) -> str:
    """What Delta says, without the names of its classes."""
    found = re.search(r"\[DELTA_\w+(\.\w+)*\][^\n]*", str(failure))
    return type(failure).__name__ if found is None else found[0][:300]

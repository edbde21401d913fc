"""Read a Delta table again up to a position of its change feed: the sum of the changes up to there.

A feed that started with the content of the table adds up to one version of the table, which is read by time travel. A
feed that started at a version or a time adds up to the changes since then, which are read again. Either way Delta must
still have the log and files of that version; `VACUUM` and log retention remove them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rejoinder.connectors.delta.spark.tables import FEED, prepare, quick
from rejoinder.errors import MissingInput

CHANGE_TYPE = "_change_type"
_BASES = (-1, -100)  # Delta's index before the first file of a version, in its two formats of offsets
_STARTS = ("startingversion", "startingtimestamp")


class NotReadableError(Exception):
    """A table cannot be read up to a position; its text says why."""


def last_version(session: SparkSession, path: str, offset: str) -> int:
    """Return the last version that a feed has read completely. Raises `NotReadableError` if it stopped within one.

    An offset is the next version and no file of it, or a version and the last file of it that was read.
    """
    fields = json.loads(offset)
    version, index = int(fields["reservoirVersion"]), int(fields["index"])
    if index in _BASES and not fields.get("isStartingVersion"):
        return version - 1
    if fields.get("isStartingVersion") or index + 1 < _files_in(session, path, version):
        raise NotReadableError(f"its last epoch ended within version {version} of the Delta table")
    return version


def _files_in(session: SparkSession, path: str, version: int) -> int:
    """Return how many files of a version a feed reads: those with changes, or else the added and removed ones."""
    actions = session.read.json(f"{path.rstrip('/')}/_delta_log/{version:020d}.json")
    counts = {name: F.count(name).alias(name) for name in ("cdc", "add", "remove") if name in actions.columns}
    row = actions.agg(*counts.values()).first()
    numbers = {} if row is None else row.asDict()
    return int(numbers.get("cdc", 0) or numbers.get("add", 0) + numbers.get("remove", 0))


def feed_until(session: SparkSession, options: Mapping[str, str], columns: Sequence[str], offset: str) -> DataFrame:
    """Return the sum of the changes of a feed up to an offset, with `_change_type`.

    Raises `NotReadableError` if Delta no longer has all of it, and `MissingInput` if the table cannot be accessed now.
    Reads the log of the table, and checks that its files exist.
    """
    prepare(session)
    path = options["path"]
    try:
        with quick(session):
            _check_identity(session, path, offset)
            last = last_version(session, path, offset)
            frame = _frame(session, options, last)
            plan: Any = frame._jdf.queryExecution()
            plan.executedPlan()  # resolves the versions
            lost = _lost_files(session, frame)
    except NotReadableError:
        raise
    except Exception as failure:  # noqa: BLE001 - turn any failure of Delta into one of ours
        if _is_final(failure):
            raise NotReadableError(f"Delta no longer has its versions: {_message(failure)}") from None
        raise MissingInput(
            f"the Delta table at `{path}` cannot be accessed to read it again",
            detail=_message(failure),
            hint="check the storage of the table, and run the statement again",
        ) from None
    if lost is not None:
        raise NotReadableError(f"file `{lost}` of version {last} of the Delta table no longer exists")
    by_lower_case = {column.lower(): column for column in frame.columns}
    present = [by_lower_case[column.lower()] for column in columns if column.lower() in by_lower_case]
    return frame.select(*[f"`{column}`" for column in present], CHANGE_TYPE)


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
        raise NotReadableError(f"the Delta table at `{path}` is not the one that was read: it was created again")


def _lost_files(session: SparkSession, frame: DataFrame) -> str | None:
    """Return a file of a snapshot that no longer exists. For changes Delta lists no files; then reading them fails."""
    jvm: Any = session._jvm
    settings = session._jsparkSession.sessionState().newHadoopConf()
    for name in frame.inputFiles():
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name))
        if not path.getFileSystem(settings).exists(path):
            return name
    return None


def _is_final(failure: BaseException) -> bool:
    """Whether a failure means that something does not exist, as opposed to a temporary failure of the storage."""
    code = re.search(r"\[DELTA_\w+|\bFileNotFoundException\b", str(failure))
    return isinstance(failure, AnalysisException) or code is not None


def _message(failure: BaseException) -> str:
    """Return the message of Delta, without the names of its classes."""
    message = re.search(r"\[DELTA_\w+(\.\w+)*\][^\n]*", str(failure))
    return type(failure).__name__ if message is None else message[0][:300]

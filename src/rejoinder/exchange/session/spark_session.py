"""The Spark session: the settings that an epoch's fixed cost depends on, set on sessions that we make ourselves.

On a session of the user's own nothing is changed: `missing_settings` says what would be faster.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import ClassVar

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rejoinder.errors import RuntimeMismatch, Unsupported
from rejoinder.exchange.session.jvm_gateway import JvmLog, start_context

OLDEST_SPARK = (4, 1)
OLDEST_JAVA = 17

# What each is for is in docs/adr/0012-exchange.md, with the figures.
SETTINGS: Mapping[str, str] = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "10s",
    "spark.sql.adaptive.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
LOCAL_JAVA_OPTIONS = "-XX:+UseParallelGC -XX:TieredStopAtLevel=1"
# Hadoop has `chmod` run for every file that it makes. This start of a process takes half of the usual one's time.
QUICK_PROCESSES = "-Djdk.lang.Process.launchMechanism=VFORK"
LAST_QUICK_JAVA = 24
# Defaults of Hadoop that nothing on one host reads: two thirds of a configuration.
UNREAD_DEFAULTS = r"^(yarn|mapreduce)\."
COMMIT_OF_FILES = "mapreduce.fileoutputcommitter."


def make_session(
    parallelism: int, *, memory: str = "2g", settings: Mapping[str, str] | None = None, log: JvmLog | None = None
) -> SparkSession:
    """Make a local session with our settings; tasks are tried four times, as on a cluster.

    `log` takes what the JVM says, start-up notices aside; it is printed to standard error unless given.
    """
    check_spark()
    java = check_java()
    options = f"{LOCAL_JAVA_OPTIONS} {QUICK_PROCESSES}" if java <= LAST_QUICK_JAVA else LOCAL_JAVA_OPTIONS
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    conf = (
        SparkConf()
        .setAppName("rejoinder")
        .setMaster(f"local[{parallelism},4]")
        .set("spark.driver.memory", memory)
        .set("spark.driver.extraJavaOptions", options)
        .set("spark.driver.bindAddress", "127.0.0.1")
        .set("spark.driver.host", "127.0.0.1")
    )
    for name, value in {**SETTINGS, **(settings or {})}.items():
        conf.set(name, value)
    log = log or JvmLog(is_quiet=False)
    try:
        context = start_context(conf, log)
        context.setLogLevel("ERROR")
        _lighten(context)
        made = SparkSession.builder.config(conf=conf).getOrCreate()
        made.conf  # noqa: B018 - wrong values of settings are found here
        return made
    except (Py4JError, PySparkException, RuntimeError) as failure:
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()  # or the next session would take over its settings
        raise RuntimeMismatch(
            "Spark cannot be started",
            detail=_reason(failure, log),
            hint="check its settings (--conf and --memory on the command line), and the free memory of this host",
        ) from failure


def _reason(failure: Exception, log: JvmLog) -> str:
    """What the JVM says, without its stack."""
    text = str(failure)
    if "JAVA_GATEWAY_EXITED" in text and log.lines:
        text = "".join(log.lines)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line.removeprefix(": ") for line in lines if re.match(r"(: )?[\w.$]+(Exception|Error)\b", line)]
    return (said or lines or [type(failure).__name__])[0]


def _lighten(context: SparkContext) -> None:
    """Spare Hadoop what each epoch would do again and again for each file source.

    Spark copies and broadcasts the whole configuration for it, and writes logs, for each of which Hadoop would write a
    checksum: a second file. What the user's settings name stays.
    """
    assert context._jvm is not None, "the context is there"
    hadoop = context._jsc.hadoopConfiguration()
    # The first use of files reads all defaults once more: what is taken out before that is back again.
    context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(hadoop).setWriteChecksum(False)
    named = {name.removeprefix("spark.hadoop.") for name, _ in context.getConf().getAll()}
    for name in list(hadoop.getValByRegex(UNREAD_DEFAULTS)):
        if name not in named and not name.startswith(COMMIT_OF_FILES):
            hadoop.unset(name)


def present_session() -> SparkSession | None:
    """The session that this process has already, if any."""
    return None if SparkContext._active_spark_context is None else SparkSession.builder.getOrCreate()


class Lease:
    """The use of a session by a flow. A session that we made is stopped when the last of its leases is released."""

    _made: ClassVar[dict[int, set[Lease]]] = {}

    def __init__(self, session: SparkSession, *, is_made: bool) -> None:
        self.session = session
        if is_made:
            self._made[id(session.sparkContext)] = {self}
        elif self._key in self._made:
            self._made[self._key].add(self)

    @property
    def _key(self) -> int:
        return id(self.session.sparkContext)

    def release(self) -> None:
        """End the use. Does nothing to a session of the user's own."""
        users = self._made.get(self._key, set())
        if self in users:
            users.remove(self)
            if not users:
                del self._made[self._key]
                self.session.stop()


def check_session(session: object) -> None:
    """Refuse what is no session of this process: epochs run on the driver, which must be here."""
    if not isinstance(session, SparkSession):
        raise Unsupported(
            f"a flow cannot run on a `{type(session).__module__}.{type(session).__qualname__}`",
            detail="it needs the Spark driver in its own process, which a Spark Connect session does not have",
            hint="give a session of SparkSession.builder.master(…), or none",
        )


def is_local(session: SparkSession) -> bool:
    """Whether all workers run on the driver's host."""
    return str(session.sparkContext.master).split("[")[0] == "local"


def tasks_at_once(session: SparkSession) -> int:
    """How many tasks an executor runs at the same time; 0 if only its host knows."""
    context = session.sparkContext
    cores = context.defaultParallelism if is_local(session) else int(context.getConf().get("spark.executor.cores", "0"))
    return cores // max(1, int(context.getConf().get("spark.task.cpus", "1")))


def is_adaptive(session: SparkSession) -> bool:
    """Whether Spark may run the stages of a query before it is asked for its rows."""
    return str(session.conf.get("spark.sql.adaptive.enabled", "true")).lower() == "true"


def missing_settings(session: SparkSession) -> dict[str, str]:
    """Our settings that a session of the user's does not have."""
    return {name: value for name, value in SETTINGS.items() if session.conf.get(name, None) != value}


def check_spark() -> None:
    """Refuse a PySpark that is too old."""
    version = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    if version < OLDEST_SPARK:
        raise RuntimeMismatch(
            f"PySpark {pyspark.__version__} is too old",
            detail=f"{'.'.join(map(str, OLDEST_SPARK))} or newer is needed",
            hint="pip install 'pyspark>=4.1'",
        )


def check_java() -> int:
    """The version of Java. Refuses to start without a usable one, before Spark fails with something less clear."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError as missing:
        raise RuntimeMismatch(
            "Java is not installed",
            detail=f"`{java}` cannot be started: {missing}",
            hint="install Java 17, or set JAVA_HOME to it",
        ) from missing
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    major = int(found.group(1)) if found is not None else 0
    said = next(iter((answer.stderr or answer.stdout).splitlines()), "nothing")
    if major < OLDEST_JAVA:
        raise RuntimeMismatch(
            f"Java {major} is too old" if major else "Java does not tell its version",
            detail=f"`{java} -version` says: {said}",
            hint="install Java 17, or set JAVA_HOME to it",
        )
    return major

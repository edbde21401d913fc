"""The Spark session: settings that determine the fixed cost of an epoch, set on sessions that we create.

A session of the user is not changed: `missing_settings` returns the settings that would make it faster.
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

# docs/adr/0012-exchange.md explains each setting, with measurements.
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
# Hadoop runs `chmod` for every file that it creates. Starting a process this way takes half of the default's time.
QUICK_PROCESSES = "-Djdk.lang.Process.launchMechanism=VFORK"
LAST_QUICK_JAVA = 24
# Defaults of Hadoop that are not used on a single host: two thirds of a configuration.
UNREAD_DEFAULTS = r"^(yarn|mapreduce)\."
COMMIT_OF_FILES = "mapreduce.fileoutputcommitter."


def make_session(
    parallelism: int, *, memory: str = "2g", settings: Mapping[str, str] | None = None, log: JvmLog | None = None
) -> SparkSession:
    """Create a local session with our settings; tasks have four attempts, as on a cluster.

    `log` receives the output of the JVM, without start-up notices; by default it is printed to standard error. Raises
    `RuntimeMismatch` if Spark cannot be started.
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
        _reduce_configuration(context)
        session = SparkSession.builder.config(conf=conf).getOrCreate()
        session.conf  # noqa: B018 - raises for invalid values of settings
        return session
    except (Py4JError, PySparkException, RuntimeError) as failure:
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()  # else the next session would inherit its settings
        raise RuntimeMismatch(
            "Spark cannot be started",
            detail=_reason(failure, log),
            hint="check its settings (--conf and --memory on the command line), and the free memory of this host",
        ) from failure


def _reason(failure: Exception, log: JvmLog) -> str:
    """Return the message of the JVM, without its stack."""
    text = str(failure)
    if "JAVA_GATEWAY_EXITED" in text and log.lines:
        text = "".join(log.lines)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    messages = [line.removeprefix(": ") for line in lines if re.match(r"(: )?[\w.$]+(Exception|Error)\b", line)]
    return (messages or lines or [type(failure).__name__])[0]


def _reduce_configuration(context: SparkContext) -> None:
    """Avoid work of Hadoop that each epoch would repeat for each file source.

    Spark copies and broadcasts the whole configuration, and writes logs, for each of which Hadoop would write a second
    file with a checksum. Entries that the user's settings name are kept.
    """
    assert context._jvm is not None, "the context has a JVM"
    hadoop = context._jsc.hadoopConfiguration()
    # The first access to a file system reads all defaults again, so it must come before their removal.
    context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(hadoop).setWriteChecksum(False)
    named = {name.removeprefix("spark.hadoop.") for name, _ in context.getConf().getAll()}
    for name in list(hadoop.getValByRegex(UNREAD_DEFAULTS)):
        if name not in named and not name.startswith(COMMIT_OF_FILES):
            hadoop.unset(name)


def present_session() -> SparkSession | None:
    """Return the session of this process; None if there is none."""
    return None if SparkContext._active_spark_context is None else SparkSession.builder.getOrCreate()


class Lease:
    """The use of a session by a flow. A session that we created is stopped when its last lease is released."""

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
        """End the use. A session of the user is not stopped."""
        users = self._made.get(self._key, set())
        if self in users:
            users.remove(self)
            if not users:
                del self._made[self._key]
                self.session.stop()


def check_session(session: object) -> None:
    """Raise `Unsupported` for anything but a session of this process: epochs run on the driver, which must be here."""
    if not isinstance(session, SparkSession):
        raise Unsupported(
            f"a flow cannot run on a `{type(session).__module__}.{type(session).__qualname__}`",
            detail="it needs the Spark driver in its own process, which a Spark Connect session does not have",
            hint="pass a session of SparkSession.builder.master(…), or none",
        )


def is_local(session: SparkSession) -> bool:
    """Whether all workers run on the driver's host."""
    return str(session.sparkContext.master).split("[")[0] == "local"


def tasks_at_once(session: SparkSession) -> int:
    """Return how many tasks an executor runs concurrently; 0 if that depends on its host."""
    context = session.sparkContext
    cores = context.defaultParallelism if is_local(session) else int(context.getConf().get("spark.executor.cores", "0"))
    return cores // max(1, int(context.getConf().get("spark.task.cpus", "1")))


def is_adaptive(session: SparkSession) -> bool:
    """Whether Spark may run the stages of a query before its rows are requested."""
    return str(session.conf.get("spark.sql.adaptive.enabled", "true")).lower() == "true"


def missing_settings(session: SparkSession) -> dict[str, str]:
    """Return our settings that a session of the user does not have."""
    return {name: value for name, value in SETTINGS.items() if session.conf.get(name, None) != value}


def check_spark() -> None:
    """Raise `RuntimeMismatch` if PySpark is too old."""
    version = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    if version < OLDEST_SPARK:
        raise RuntimeMismatch(
            f"PySpark {pyspark.__version__} is too old",
            detail=f"{'.'.join(map(str, OLDEST_SPARK))} or newer is needed",
            hint="pip install 'pyspark>=4.1'",
        )


def check_java() -> int:
    """Return the major version of Java. Raises `RuntimeMismatch` without a usable one: Spark's own error is unclear."""
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
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    major = int(version.group(1)) if version is not None else 0
    first_line = next(iter((answer.stderr or answer.stdout).splitlines()), "nothing")
    if major < OLDEST_JAVA:
        raise RuntimeMismatch(
            f"Java {major} is too old" if major else "the version of Java is unknown",
            detail=f"`{java} -version` says: {first_line}",
            hint="install Java 17, or set JAVA_HOME to it",
        )
    return major

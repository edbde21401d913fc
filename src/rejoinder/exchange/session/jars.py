"""Jars that are not part of Spark (connectors, formats, JDBC drivers): on its class path, or downloaded on demand.

They are downloaded like `spark.jars.packages`, by the same resolver and into the same cache, but into a running
session: a flow may declare its first Kafka source at any time. The setting `spark.rejoinder.packages.<name>` of the
session replaces the packages, for other registries or offline use: a list of Maven coordinates (optionally with
`?exclude=group:module&transitive=false`) or paths of jars.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rejoinder.errors import RuntimeMismatch
from rejoinder.exchange.session.spark_session import is_local
from rejoinder.host.private_files import lock_file

SETTING = "spark.rejoinder.packages."


@dataclass(frozen=True)
class Package:
    """A package of jars."""

    name: str
    marker: str
    """A class of the package, to test whether it is present."""
    coordinates: Sequence[str]
    """Maven coordinates; `{spark}`, `{minor}` and `{scala}` are replaced by the versions of the session."""


KAFKA = Package(
    "kafka",
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    ["org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}"],
)

# Spark contains the other dependencies of Delta.
DELTA = Package(
    "delta",
    "io.delta.tables.DeltaTable",
    ["io.delta:delta-spark_{minor}_{scala}:4.4.0?transitive=false", "io.delta:delta-storage:4.4.0?transitive=false"],
)
POSTGRESQL = Package("postgresql", "org.postgresql.Driver", ["org.postgresql:postgresql:42.7.7?transitive=false"])


def provide(session: SparkSession, package: Package) -> None:
    """Make a package available to this thread. Raises `RuntimeMismatch` if it cannot be downloaded."""
    jvm: Any = session._jvm
    # Each thread has its own class loader, and loaders of older threads do not know jars that were added later.
    loader = session._jsparkSession.sharedState().jarClassLoader()
    jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)
    if _is_present(jvm, package.marker, loader):
        return
    versions = {
        "spark": session.version,
        "minor": ".".join(session.version.split(".")[:2]),
        "scala": jvm.scala.util.Properties.versionNumberString().rpartition(".")[0],
    }
    setting = str(session.conf.get(SETTING + package.name, "") or "")
    jars = [jar.strip() for jar in setting.split(",") if jar.strip()] or list(package.coordinates)
    before = {str(place) for place in loader.getURLs()}
    for place in (jar.format(**versions) for jar in jars):
        try:
            with resolver_lock():
                _add(session, loader, f"ivy://{place}" if ":" in place and "://" not in place else place)
        except (Py4JJavaError, PySparkException) as failure:
            raise RuntimeMismatch(
                f"the jars for {package.name} cannot be downloaded",
                detail=f"{place}: {_reason(str(failure))}",
                hint=f"start Spark with spark.jars.packages={','.join(package.coordinates).format(**versions)}, or set "
                f"{SETTING}{package.name} to coordinates or paths of jars",
            ) from None
    _share(loader, before)
    if not _is_present(jvm, package.marker, loader):
        raise RuntimeMismatch(
            f"the jars for {package.name} lack a required class",
            detail=f"class {package.marker} is not in {', '.join(jars)}",
            hint=f"correct {SETTING}{package.name}, or remove it",
        )


@contextmanager
def resolver_lock() -> Iterator[None]:
    """Let only one process of this user resolve at a time on this host: Ivy's cache does not support two writers."""
    with lock_file(os.path.join(tempfile.gettempdir(), f"rejoinder-ivy-{os.getuid()}.lock")) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _add(session: SparkSession, loader: Any, place: str) -> None:
    """Add jars to the class path of driver and executors.

    In local mode both are one JVM. If each loaded a class by its own loader, the class would exist twice, which breaks
    Delta. So the jars are added to the common parent loader.
    """
    parent = loader.getParent()
    if not is_local(session) or parent.getClass().getSimpleName() != "MutableURLClassLoader":
        session.sql(f"ADD JAR '{place}'")
        return
    jvm: Any = session._jvm
    paths = [place]
    if place.startswith("ivy://"):
        resolved = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(jvm.java.net.URI.create(place))
        paths = [str(resolved.apply(number)) for number in range(resolved.size())]
    for path in paths:
        parent.addURL(jvm.java.io.File(path.removeprefix("file://")).toURI().toURL())


def _share(loader: Any, before: set[str]) -> None:
    """Make the jars of a session visible to the whole JVM, as if present at the start: tasks report errors by class."""
    parent = loader.getParent()
    if parent is not None and parent.getClass().getSimpleName() == "MutableURLClassLoader":
        for place in loader.getURLs():
            if str(place) not in before:
                parent.addURL(place)


def _is_present(jvm: Any, name: str, loader: Any) -> bool:
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Py4JError:
        return False
    return True


def _reason(text: str) -> str:
    """Return the line of the resolver's output that states the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    reasons = [line for line in lines if "not found" in line or "unresolved" in line]
    return (reasons or lines or [text])[0]

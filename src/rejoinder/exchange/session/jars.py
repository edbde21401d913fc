"""Jars that Spark does not bring along (connectors, formats, drivers): found on its class path, or fetched when needed.

They are fetched as `spark.jars.packages` fetches, by the same resolver and into the same cache, but into a session that
runs: a flow may declare its first source on Kafka at any time. What is fetched can be set on the session, for those
whose registry is another, or who are offline: `spark.rejoinder.packages.<name>`, a list of Maven coordinates (with
`?exclude=group:module&transitive=false` where wanted) or paths of jars.
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
    """What to fetch, and a class by which to know that it is there; `{spark}`, `{minor}`, `{scala}`: those that run."""

    name: str
    marker: str
    coordinates: Sequence[str]


KAFKA = Package(
    "kafka",
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    ["org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}"],
)

# What else Delta asks for is there: it comes with Spark.
DELTA = Package(
    "delta",
    "io.delta.tables.DeltaTable",
    ["io.delta:delta-spark_{minor}_{scala}:4.4.0?transitive=false", "io.delta:delta-storage:4.4.0?transitive=false"],
)
POSTGRESQL = Package("postgresql", "org.postgresql.Driver", ["org.postgresql:postgresql:42.7.7?transitive=false"])


def provide(session: SparkSession, package: Package) -> None:
    """Make a package usable from this thread. Raises `RuntimeMismatch` if it is neither there nor to be had."""
    jvm: Any = session._jvm
    # Each thread has a loader of classes of its own, and those that were there before do not know what came later.
    loader = session._jsparkSession.sharedState().jarClassLoader()
    jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)
    if _is_there(jvm, package.marker, loader):
        return
    versions = {
        "spark": session.version,
        "minor": ".".join(session.version.split(".")[:2]),
        "scala": jvm.scala.util.Properties.versionNumberString().rpartition(".")[0],
    }
    set_ = str(session.conf.get(SETTING + package.name, "") or "")
    wanted = [each.strip() for each in set_.split(",") if each.strip()] or list(package.coordinates)
    before = {str(place) for place in loader.getURLs()}
    for place in (each.format(**versions) for each in wanted):
        try:
            with _alone():
                _add(session, loader, f"ivy://{place}" if ":" in place and "://" not in place else place)
        except (Py4JJavaError, PySparkException) as failure:
            raise RuntimeMismatch(
                f"the jars for {package.name} cannot be fetched",
                detail=f"{place}: {_reason(str(failure))}",
                hint=f"start Spark with spark.jars.packages={','.join(package.coordinates).format(**versions)}, or set "
                f"{SETTING}{package.name} to coordinates or paths of jars",
            ) from None
    _share(loader, before)
    if not _is_there(jvm, package.marker, loader):
        raise RuntimeMismatch(
            f"the jars for {package.name} do not hold what is needed",
            detail=f"class {package.marker} is not in {', '.join(wanted)}",
            hint=f"correct {SETTING}{package.name}, or leave it out",
        )


@contextmanager
def _alone() -> Iterator[None]:
    """Of all processes of a user on this host one resolves at a time: Ivy's cache does not bear two that write."""
    with lock_file(os.path.join(tempfile.gettempdir(), f"rejoinder-ivy-{os.getuid()}.lock")) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _add(session: SparkSession, loader: Any, place: str) -> None:
    """Put jars on the class path of driver and executors.

    In local mode these are one JVM, and a class that each of them loaded for itself would be there twice, which Delta
    does not bear. So there the loader is used that both of them ask first.
    """
    above = loader.getParent()
    if not is_local(session) or above.getClass().getSimpleName() != "MutableURLClassLoader":
        session.sql(f"ADD JAR '{place}'")
        return
    jvm: Any = session._jvm
    paths = [place]
    if place.startswith("ivy://"):
        found = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(jvm.java.net.URI.create(place))
        paths = [str(found.apply(at)) for at in range(found.size())]
    for path in paths:
        above.addURL(jvm.java.io.File(path.removeprefix("file://")).toURI().toURL())


def _share(loader: Any, before: set[str]) -> None:
    """Let all of the JVM see what a session got, as if it had been there at the start: tasks report errors by class."""
    parent = loader.getParent()
    if parent is not None and parent.getClass().getSimpleName() == "MutableURLClassLoader":
        for place in loader.getURLs():
            if str(place) not in before:
                parent.addURL(place)


def _is_there(jvm: Any, name: str, loader: Any) -> bool:
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Py4JError:
        return False
    return True


def _reason(text: str) -> str:
    """What the resolver has to say, of a page of it."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    told = [line for line in lines if "not found" in line or "unresolved" in line]
    return (told or lines or [text])[0]

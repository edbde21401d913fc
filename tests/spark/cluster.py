"""A standalone Spark cluster from the pip package: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


@dataclass(frozen=True)
class Cluster:
    """Where the master is, and the workers' process ids; executors are their children."""

    url: str
    workers: tuple[int, ...]


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Start a cluster with two workers of one core each; all of it ends with the block."""
    with ExitStack() as stack:
        log = folder / "master.log"
        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        stack.enter_context(_daemon(log, [MASTER, *ports]))
        url = _wait_for(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        workers = []
        for number in (1, 2):
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker{number}")]
            started = _daemon(folder / f"worker{number}.log", [WORKER, *ports, *size, url])
            workers.append(stack.enter_context(started))
        for number in (1, 2):
            _wait_for(folder / f"worker{number}.log", r"(Successfully registered with master)")
        yield Cluster(url, tuple(workers))


@contextmanager
def _daemon(log: Path, arguments: list[str]) -> Iterator[int]:
    environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["SPARK_DAEMON_JAVA_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    with log.open("w") as file:
        # A group of its own: executors that a worker has started end with it.
        process = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *arguments],
            env=environment, stdout=file, stderr=file, start_new_session=True, cwd=log.parent,
        )  # fmt: skip
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(log: Path, pattern: str, seconds: float = 90) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text())
        if found is not None:
            return found.group(1)
        time.sleep(0.1)
    raise TimeoutError(f"{pattern!r} in {log}:\n{log.read_text()}")


def run_driver(script: str, *arguments: str, folder: Path) -> str:
    """Run a driver program in a process of its own; what it printed."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout

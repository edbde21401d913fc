"""Flink, in the environment that has its jars: compiles `FlinkEngine.java` and becomes its JVM.

Flink's CSV format knows no header and a folder of files is read in any order, while the watermarks need the order of
arrival. So each table becomes one file without header, before the clock starts. Java talks to the harness itself.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from benchmarks.engines import jvm
from benchmarks.engines.protocol import Task
from benchmarks.nexmark.workloads import WORKLOADS as NEXMARK

SOURCE = Path(__file__).with_name("FlinkEngine.java")
NEXMARK_QUERIES = Path(__file__).parents[1] / "nexmark" / "flink"
OPEN = ("java.base/java.util", "java.base/java.lang", "java.base/java.time", "java.base/java.nio")


def jars() -> str:
    """The class path: every jar of Flink's `lib` folder, which the package brings."""
    spec = importlib.util.find_spec("pyflink")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise SystemExit("no package apache-flink-libraries in this environment")
    return str(Path(next(iter(places))) / "lib" / "*")


def _nexmark(workload: str) -> list[str]:
    if workload not in NEXMARK:
        return []
    query = NEXMARK[workload]
    return [str(NEXMARK_QUERIES / f"{query.name}.sql"), ",".join(query.checked)]


def main() -> None:
    task = Task.from_argument(sys.argv[1])
    classpath = jvm.compiled(jars(), SOURCE)
    command = [
        *jvm.command(classpath, task.cores),
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPEN),
        SOURCE.stem,
        task.workload,
        *(str(jvm.whole_files(data)) if data else "" for data in (task.data, task.warm)),
        str(task.cores),
        task.store,
        *_nexmark(task.workload),
    ]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()

"""Flink, in the environment that has its jars: compiles `FlinkEngine.java` and becomes its JVM.

Flink's CSV format knows no header and a folder of files is read in any order, while the watermarks need the order of
arrival. So each table becomes one file without header, before the clock starts. Java talks to the harness itself.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.engines.protocol import Task

SOURCE = Path(__file__).with_name("FlinkEngine.java")
OPEN = ("java.base/java.util", "java.base/java.lang", "java.base/java.time", "java.base/java.nio")


def jars() -> str:
    """The class path: every jar of Flink's `lib` folder, which the package brings."""
    spec = importlib.util.find_spec("pyflink")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise SystemExit("no package apache-flink-libraries in this environment")
    return str(Path(next(iter(places))) / "lib" / "*")


def whole_files(data: str) -> Path:
    """Every table of a workload as one file without header, beside its part files; made once."""
    folder = Path(data) / "whole"
    folder.mkdir(exist_ok=True)
    for table in (Path(data) / "csv").iterdir():
        target = folder / f"{table.name}.csv"
        if target.exists():
            continue
        partial = target.with_suffix(f".partial-{os.getpid()}")
        with partial.open("wb") as whole:
            for part in sorted(table.glob("part-[0-9]*.csv")):
                with part.open("rb") as rows:
                    rows.readline()
                    shutil.copyfileobj(rows, whole)
        partial.rename(target)
    return folder


def java(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/{name}" if home else name


def main() -> None:
    task = Task.from_argument(sys.argv[1])
    classes = Path(tempfile.gettempdir()) / "flink-classes"
    subprocess.run([java("javac"), "-cp", jars(), "-d", str(classes), str(SOURCE)], check=True)
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 >> 20
    command = [
        java("java"),
        f"-Xmx{memory_mb}m",
        f"-XX:ActiveProcessorCount={task.cores}",
        f"-Djava.io.tmpdir={tempfile.gettempdir()}",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPEN),
        *("-cp", f"{classes}{os.pathsep}{jars()}"),
        SOURCE.stem,
        task.workload,
        *(str(whole_files(data)) if data else "" for data in (task.data, task.warm)),
        str(task.cores),
    ]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()

"""What engines written in Java have in common: compiling, the options of the JVM, and input as whole files.

Standard library only, because the engines' own environments have nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def java(name: str) -> str:
    """A tool of the JDK that Spark takes, too."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/{name}" if home else name


def compiled(jars: str, *sources: Path) -> str:
    """Compile against a class path, unless that was done; return that class path with the classes added."""
    classes = Path(tempfile.gettempdir()) / f"{sources[0].stem}-classes"
    main = classes / f"{sources[0].stem}.class"
    if not main.exists() or main.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        subprocess.run([java("javac"), "-cp", jars, "-d", str(classes), *map(str, sources)], check=True)
    return f"{classes}{os.pathsep}{jars}"


def command(classpath: str, cores: int) -> list[str]:
    """The beginning of a command line: half of the machine's memory, as many cores as the other engines have."""
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 >> 20
    return [
        java("java"),
        f"-Xmx{memory_mb}m",
        f"-XX:ActiveProcessorCount={cores}",
        f"-Djava.io.tmpdir={tempfile.gettempdir()}",
        *("-cp", classpath),
    ]


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

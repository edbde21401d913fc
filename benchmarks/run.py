"""Run one engine on one workload in a process of its own, with the clock outside of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from benchmarks.engines.protocol import PREFIX, Task
from benchmarks.measure import Reading, TreeClock
from benchmarks.truth import Truth

HERE = Path(__file__).resolve().parent
TIME_LIMIT_S = 1800


@dataclass(frozen=True)
class Contestant:
    """An engine as it appears in the table, and how it runs a workload."""

    engine: str
    module: str
    task: str  # the workload as the engine module knows it
    truth: str  # the query whose answer it must give
    note: str = ""


def contestants(engine: str, workload: str) -> list[Contestant]:
    """Who runs `workload` when `engine` is asked for."""
    if engine == "rejoinder":
        return [Contestant(engine, "rejoinder_engine", workload, workload)]
    if engine == "spark":
        if workload == "W2":
            return [Contestant(engine, "spark_native", "W2", "W2i", "inserts only: no retractions")]
        return [Contestant(engine, "spark_native", workload, workload)]
    with_deletes = "Python connector" if workload == "W2" else ""
    runs = [Contestant(engine, "pathway_engine", workload, workload, with_deletes)]
    if workload == "W2":
        runs.append(Contestant("pathway-inserts", "pathway_engine", "W2i", "W2i", "inserts only"))
    return runs


def interpreter(engine: str) -> str:
    """The Python that has the engine: this one, or for Pathway `PATHWAY_PYTHON` or `.venv-pathway`."""
    if not engine.startswith("pathway"):
        return sys.executable
    given = os.environ.get("PATHWAY_PYTHON")
    return str(Path(given).absolute() if given else HERE.parent / ".venv-pathway" / "bin" / "python")


def run(who: Contestant, truth: Truth, *, n: int, data: Path, warm: Path, out: Path, cores: int) -> dict[str, Any]:
    """Return the result line. A run that fails or answers wrongly has `ok` false; its log says why."""
    name = f"{who.engine}-{data.name}-{n}"
    state, log = out / "state" / name, out / "logs" / f"{name}.log"
    shutil.rmtree(state, ignore_errors=True)
    for folder in (state, out / "scratch", log.parent):
        folder.mkdir(parents=True, exist_ok=True)
    task = Task(who.task, str(data), str(warm), str(state), cores, truth.rows_out, truth.checksum)
    load = os.getloadavg()[0]
    try:
        reading, answer = _converse(who, task, out / "scratch", log)
        state_bytes = sum(path.stat().st_size for path in state.rglob("*") if path.is_file())
    finally:
        shutil.rmtree(state, ignore_errors=True)
    right = (answer.get("rows_out"), answer.get("checksum")) == (truth.rows_out, truth.checksum)
    line: dict[str, Any] = {
        "engine": who.engine,
        "workload": data.name,
        "n": n,
        "rows_in": truth.rows_in,
        "rows_out": answer.pop("rows_out", None),
        "seconds": reading.seconds,
        "cpu_s": reading.cpu_s,
        "peak_rss_mb": reading.peak_rss_mb,
        "bytes_written": reading.bytes_written,
        "ok": right,
        "peak_worker_mb": reading.peak_private_mb,
        "state_bytes": state_bytes,
        "load1": round(load, 2),
    }
    answer.pop("checksum", None)
    if who.note:
        line["note"] = who.note
    if not right:
        line["log"] = str(log.relative_to(out))
    return line | answer


def _converse(who: Contestant, task: Task, scratch: Path, log: Path) -> tuple[Reading, dict[str, Any]]:
    """Start the engine and answer its lines; return the reading and its result, empty if it died."""
    command = [interpreter(who.engine), "-m", f"benchmarks.engines.{who.module}", task.as_argument()]
    environment = os.environ | {"SPARK_LOCAL_DIRS": str(scratch), "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"}
    reading, answer = Reading(0.0, 0.0, 0, 0, 0), dict[str, Any]()
    with log.open("w") as noise:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=noise,
            text=True,
            cwd=HERE.parent,
            env=environment,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        _pin(process.pid, task.cores)
        clock = TreeClock(process.pid)
        limit = threading.Timer(TIME_LIMIT_S, _kill_tree, [process.pid])
        limit.start()
        try:
            for line in process.stdout:
                if not line.startswith(PREFIX):
                    noise.write(line)
                    continue
                message = json.loads(line.removeprefix(PREFIX))
                event = message.pop("event")
                if event == "result":
                    answer = message
                elif event == "started":
                    clock.start()
                    _go_on(process.stdin)
                else:
                    reading = clock.stop()
                    _go_on(process.stdin)
            process.wait()
        finally:
            limit.cancel()
            clock.close()
            _kill_tree(process.pid)
    return reading, answer


def _go_on(stdin: IO[str]) -> None:
    stdin.write("go\n")
    stdin.flush()


def _pin(pid: int, cores: int) -> None:
    """Give every engine the same cores, where the platform can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, sorted(os.sched_getaffinity(0))[:cores])


def _kill_tree(pid: int) -> None:
    """End what this run started and what that started in turn."""
    try:
        root = psutil.Process(pid)
        family = [*root.children(recursive=True), root]
    except psutil.NoSuchProcess:
        return
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()

"""Run one engine on one workload in a process of its own, with the clock outside of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import psutil

from benchmarks import brokers
from benchmarks.engines import jvm
from benchmarks.engines.protocol import PREFIX, Task
from benchmarks.measure import Reading, TreeClock
from benchmarks.nexmark.workloads import WORKLOADS as NEXMARK
from benchmarks.truth import Truth

HERE = Path(__file__).resolve().parent
TIME_LIMIT_S = 1800
MEMORY_LIMIT = psutil.virtual_memory().total // 2


@dataclass(frozen=True)
class Contestant:
    """An engine as it appears in the table, and how it runs a workload."""

    engine: str
    module: str
    workload: str
    task: str  # the workload as the engine module knows it
    truth: str  # the query whose answer it must give
    note: str = ""
    is_warm: bool = True  # whether it may warm up before the clock starts
    store: str = ""  # where the engine keeps its state, or how it runs, for engines that have a choice
    needs_broker: bool = False  # whether it reads topics; the broker is not part of what it costs


def contestants(engine: str, workload: str) -> list[Contestant]:
    """Who runs `workload` when `engine` is asked for; nobody if the engine cannot."""
    as_it_is = (workload, workload, workload)
    has_deletes = workload[:2] == "W2"
    if workload in NEXMARK and engine not in ("rejoinder", "flink"):
        return []  # Nexmark has targets for Flink only
    if engine == "spark":
        if workload == "W2":
            return [Contestant(engine, "spark_native", "W2", "W2", "W2i", "inserts only: no retractions")]
        if workload in ("W1", "W1L"):
            stored = [Contestant(engine, "spark_native", *as_it_is, "state in memory")]
            return [
                *stored,
                Contestant("spark-rocksdb", "spark_native", *as_it_is, "state in RocksDB", store="rocksdb"),
            ]
        # other outer joins of streams need a bound in time, and there is no join as of a time
        return [Contestant(engine, "spark_native", *as_it_is)] if workload == "W3" else []
    if engine == "pathway":
        if workload in ("W1", "W1L"):
            forgetting = Contestant(engine, "pathway_engine", *as_it_is, "forgets", store="forgetting")
            keeping = Contestant("pathway-all", "pathway_engine", *as_it_is, "keeps every row")
            # with forgetting, its LEFT join was seen to stand still before it had the answer, for eight minutes
            return [forgetting, keeping] if workload == "W1" else [keeping]
        runs = [Contestant(engine, "pathway_engine", *as_it_is, "Python connector" if has_deletes else "")]
        if workload == "W2":
            runs.append(Contestant("pathway-inserts", "pathway_engine", "W2", "W2i", "W2i", "inserts only"))
        return runs
    if engine == "flink":
        runs = [Contestant(engine, "flink_engine", *as_it_is, "no checkpoints")]
        if workload in NEXMARK:
            batched = "no checkpoints, mini-batch"
            runs.append(Contestant("flink-mini-batch", "flink_engine", *as_it_is, batched, store="mini-batch"))
        if workload == "W4":
            cold = "no checkpoints, no warm-up"
            runs.append(Contestant("flink-cold", "flink_engine", *as_it_is, cold, is_warm=False))
        return runs
    if engine == "kafka-streams":
        if workload not in ("W1", "W1L"):  # the two of its target; the others are not written for it
            return []
        note = "RocksDB, no changelog, broker not counted"
        return [Contestant(engine, "kafka_streams_engine", *as_it_is, note, needs_broker=True)]
    return [Contestant(engine, "rejoinder_engine", *as_it_is)]


def interpreter(engine: str) -> str:
    """The Python that has the engine: this one, or the one of the engine's own environment.

    That is `PATHWAY_PYTHON` or `.venv-pathway`, and `FLINK_PYTHON` or `.venv-flink`.
    """
    for name in ("pathway", "flink"):
        if engine.startswith(name):
            given = os.environ.get(f"{name.upper()}_PYTHON")
            return str(Path(given).absolute() if given else HERE.parent / f".venv-{name}" / "bin" / "python")
    return sys.executable


def obstacle(engine: str) -> str | None:
    """Why an engine cannot run on this machine, or None."""
    python = interpreter(engine)
    if shutil.which(python) is None:
        return f"no interpreter {python}; `make bench` makes one, or set {engine.upper()}_PYTHON"
    if engine in ("flink", "kafka-streams") and shutil.which(jvm.java("javac")) is None:
        return f"no Java compiler {jvm.java('javac')}; install a JDK, a runtime alone is not enough"
    if engine == "kafka-streams":
        return brokers.missing("kafka_2.13", "kafka-streams")
    return None


def run(who: Contestant, truth: Truth, *, n: int, data: Path, warm: Path, out: Path, cores: int) -> dict[str, Any]:
    """Return the result line. A run that fails or answers wrongly has `ok` false; its log says why.

    One that took more than its share of time or memory has `stopped`, and what it used until then.
    """
    name = f"{who.engine}-{who.workload}-{n}"
    state, log = out / "state" / name, out / "logs" / f"{name}.log"
    shutil.rmtree(state, ignore_errors=True)
    for folder in (state, out / "scratch", log.parent):
        folder.mkdir(parents=True, exist_ok=True)
    few = str(warm) if who.is_warm else ""
    task = Task(who.task, str(data), few, str(state), cores, truth.rows_out, truth.checksum, who.store)
    load = os.getloadavg()[0]
    try:
        if who.needs_broker:
            with brokers.broker(out / "scratch") as broker:
                assert broker.process is not None
                task = replace(task, broker=broker.address)
                reading, answer = _converse(who, task, out / "scratch", log, broker.process.pid)
        else:
            reading, answer = _converse(who, task, out / "scratch", log)
        state_bytes = sum(path.stat().st_size for path in state.rglob("*") if path.is_file())
    finally:
        shutil.rmtree(state, ignore_errors=True)
    right = (answer.get("rows_out"), answer.get("checksum")) == (truth.rows_out, truth.checksum)
    line: dict[str, Any] = {
        "engine": who.engine,
        "workload": who.workload,
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


def _converse(
    who: Contestant, task: Task, scratch: Path, log: Path, broker: int | None = None
) -> tuple[Reading, dict[str, Any]]:
    """Start the engine and answer its lines; return the reading and its result, empty if it died.

    What the broker's process used meanwhile is told with the result, and not in the reading.
    """
    command = [interpreter(who.engine), "-m", f"benchmarks.engines.{who.module}", task.as_argument()]
    environment = os.environ | {"SPARK_LOCAL_DIRS": str(scratch), "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"}
    reading, answer = Reading(0.0, 0.0, 0, 0, 0), dict[str, Any]()
    before, beside = 0.0, dict[str, Any]()
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
        guard = _Guard(process.pid, clock)
        guard.start()
        try:
            for line in process.stdout:
                if not line.startswith(PREFIX):
                    noise.write(line)
                    continue
                message = json.loads(line.removeprefix(PREFIX))
                event = message.pop("event")
                if event == "result":
                    answer = message | beside
                elif event == "started":
                    before = _cpu_s(broker)
                    clock.start()
                    _go_on(process.stdin)
                else:
                    reading = clock.stop()
                    beside = {"broker_cpu_s": round(_cpu_s(broker) - before, 2)} if broker else {}
                    _go_on(process.stdin)
            process.wait()
        finally:
            guard.close()
            clock.close()
            _kill_tree(process.pid)
    if guard.reason and not answer:
        return guard.reading or reading, {"stopped": guard.reason}
    return reading, answer


class _Guard(threading.Thread):
    """Stop an engine that takes too long or too much memory, and keep what it used until then."""

    def __init__(self, pid: int, clock: TreeClock) -> None:
        super().__init__(daemon=True)
        self.reason = ""
        self.reading: Reading | None = None
        self._pid, self._clock, self._ended = pid, clock, threading.Event()

    def run(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(0.5):
            memory = self._clock.rss
            if time.monotonic() - began > TIME_LIMIT_S:
                self.reason = f"stopped after {TIME_LIMIT_S} s"
            elif memory > MEMORY_LIMIT:
                self.reason = f"stopped at {memory / 1e9:.1f} GB of memory"
            else:
                continue
            self.reading = self._clock.stop()
            _kill_tree(self._pid)
            return

    def close(self) -> None:
        self._ended.set()
        self.join()


def _go_on(stdin: IO[str]) -> None:
    stdin.write("go\n")
    stdin.flush()


def _pin(pid: int, cores: int) -> None:
    """Give every engine the same cores, where the platform can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, sorted(os.sched_getaffinity(0))[:cores])


def _cpu_s(pid: int | None) -> float:
    """The CPU seconds that a process has used, without its children."""
    if pid is None:
        return 0.0
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


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

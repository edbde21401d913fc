"""`python -m benchmarks.large_state`: a state larger than a worker may be: memory of the workers, and no stalled epoch.

Wide rows are loaded until the arrangements hold GB gigabytes, then small epochs run on top. Reported: the largest
resident memory of a Python worker that is its own (mapped pages of runs aside, RssAnon), and the slowest epoch of each
phase against the median one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import rejoinder as rj

OUT = Path(__file__).resolve().parent / "out"
EPOCH_ROWS, SMALL_ROWS, WIDTH = 500_000, 1_000, 200
WORKER_LIMIT_MB = 1024


class WorkerMemory(threading.Thread):
    """Samples the own resident memory of the Python workers."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mb = 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.2):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "pyspark.daemon" in process.cmdline():
                        self.peak_mb = max(self.peak_mb, own_memory_mb(process.pid))
                except (psutil.Error, OSError):
                    continue


def own_memory_mb(pid: int) -> int:
    """Resident memory that is not a mapped file."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("RssAnon:"))) // 1024


def write_rows(folder: Path, number: int, rows: int, keys: int, rng: np.random.Generator) -> None:
    """One file of wide rows; the texts are different, so that nothing is stored once for many rows."""
    letters = rng.integers(97, 123, (rows, WIDTH), dtype=np.uint8)
    offsets = pa.py_buffer((np.arange(rows + 1, dtype=np.int32) * WIDTH).tobytes())
    text = pa.Array.from_buffers(pa.string(), rows, [None, offsets, pa.py_buffer(letters.tobytes())])
    table = pa.table({"k": rng.integers(0, keys, rows), "note": text})
    part = folder / f".{number:05d}"
    pq.write_table(table, part, compression="none", use_dictionary=False)
    os.replace(part, folder / f"{number:05d}.parquet")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_state")
    parser.add_argument("--gigabytes", type=float, default=float(os.environ.get("GB") or 5))
    parser.add_argument("--small-epochs", type=int, default=40)
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    folder = OUT / "large_state"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("wide", "narrow"):
        (folder / name).mkdir(parents=True)
    rng = np.random.default_rng(7)
    flow = rj.Flow(folder / "state")
    for name in ("wide", "narrow"):
        options_text = f"path '{folder / name}', maxFilesPerTrigger '1'"
        flow.sql(f"CREATE STREAM {name} (k BIGINT, note STRING) USING parquet OPTIONS ({options_text})")
    flow.sql("CREATE VIEW pairs AS SELECT w.k, n.k AS other FROM wide w JOIN narrow n ON w.k = n.k WHERE n.k < 0")
    flow.warm_up()
    memory = WorkerMemory()
    memory.start()
    keys, number = 10_000_000, 0

    def state_bytes() -> int:
        return sum(int(a["bytes"]) for a in flow.arrangements())

    started = time.time()
    while state_bytes() < options.gigabytes * 1e9:
        write_rows(folder / "wide", number, EPOCH_ROWS, keys, rng)
        number += 1
        with console.status(f"loading: {state_bytes() / 1e9:.2f} GB, worker {memory.peak_mb} MB"):
            flow.run()
        (folder / "wide" / f"{number - 1:05d}.parquet").unlink()
    loading = [float(epoch["seconds"]) for epoch in flow.progress]
    loaded_in, loaded = time.time() - started, len(loading)
    for turn in range(options.small_epochs):
        write_rows(folder / ("wide" if turn % 2 else "narrow"), number + turn, SMALL_ROWS, keys, rng)
        flow.run()
    memory.done.set()
    small = [float(epoch["seconds"]) for epoch in flow.progress[loaded:]]
    report = {
        "state_bytes": state_bytes(),
        "rows": sum(int(a["rows"]) for a in flow.arrangements()),
        "runs": {a["name"]: a["runs"] for a in flow.arrangements()},
        "worker_own_memory_mb": memory.peak_mb,
        "loading_epoch_seconds": {"median": _median(loading), "slowest": max(loading), "total": loaded_in},
        "small_epoch_seconds": {"median": _median(small), "slowest": max(small)},
        "ok": memory.peak_mb < WORKER_LIMIT_MB,
    }
    (OUT / "large_state.json").write_text(json.dumps(report, indent=1))
    console.print_json(json.dumps(report))
    met = "met" if report["ok"] else "NOT met"
    console.print(f"target own memory of a worker under {WORKER_LIMIT_MB} MB, measured {memory.peak_mb}, {met}")
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if report["ok"] else 1


def _median(values: list[float]) -> float:
    return round(float(np.median(values)), 3)


if __name__ == "__main__":
    sys.exit(main())

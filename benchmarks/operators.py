"""What the epochs of W1–W4 cost without Spark: CPU seconds of one process, the best of several runs.

    python -m benchmarks.operators --n 1000000 --repeat 8

The test driver reads one part file of each table per epoch, and commits to a state on disk. The rows of the result are
compared with the batch answer. To compare two versions, run this file with the sources of each in turn:

    PYTHONPATH=<other checkout>/src python -m benchmarks.operators
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from unittest import mock

import pyarrow as pa

from benchmarks.engines.rejoinder_engine import VIEWS, answer, source
from benchmarks.generate import PARTS, generate
from benchmarks.nexmark.workloads import WORKLOADS as NEXMARK
from benchmarks.truth import inputs, truths
from rejoinder.testing import Driver, driver

WORKLOADS = ("W1", "W2", "W3", "W4", *NEXMARK)
HERE = Path(__file__).resolve().parent


def seconds(workload: str, n: int, state: str) -> float:
    """Run all epochs of a workload on a new state; return their CPU seconds. Raises if the result is wrong."""
    folder = generate(inputs(workload), n, HERE / "data")
    tables, select = VIEWS[workload]
    flow = Driver(store=state)
    for table, declaration in tables.items():
        flow.sql(source(declaration, folder / "parquet" / table))
    flow.sql(f"CREATE VIEW result AS {select}")
    start = time.process_time()
    with mock.patch.object(driver, "net_changes", return_value=[]):  # `step` would return all changes as Python rows
        for _ in range(PARTS + 1):  # W1 has one more, which ends the hours
            flow.step()
    cpu = time.process_time() - start
    measured = answer(workload, pa.Table.from_pylist(flow.table("result")))
    truth = truths(folder)[workload]
    if measured != (truth.rows_out, truth.checksum):
        raise AssertionError(f"{workload}: {measured}, and the batch answer is {truth}")
    return cpu


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators", description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000, help="rows of a workload")
    parser.add_argument("--repeat", type=int, default=8, help="runs of each workload")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    options = parser.parse_args()
    for workload in options.workloads:
        runs = []
        for _ in range(options.repeat):
            with tempfile.TemporaryDirectory(prefix="rejoinder-operators-") as folder:
                runs.append(seconds(workload, options.n, f"{folder}/state"))
        listed = " ".join(f"{run:.2f}" for run in sorted(runs))
        print(f"{workload}  best {min(runs):.2f} s CPU  all {listed}", flush=True)


if __name__ == "__main__":
    main()

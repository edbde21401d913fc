"""Every named fault point: the process dies there with SIGKILL, and the flow ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.kernels.faults import POINTS
from rejoinder.testing import Driver

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = Path(__file__).with_name("flow_script.py")
FILES = 3
# where the driver dies: at a point, in the epoch or after the epoch that the second part of the name gives
DRIVER_FAULTS = [
    "in_generation:-1",
    "after_generation:-1",
    "before_tasks:0",
    "after_tasks:1",
    "after_commit:1",
    "after_collection:2",
    "in_hydration:2",
    "in_generation:2",
    "after_generation:2",
    "after_tasks:3",
]
WORKER_FAULTS = ["scan:1", "round:1"]


def test_every_point_has_a_test() -> None:
    assert {fault.split(":")[0] for fault in [*DRIVER_FAULTS, *WORKER_FAULTS]} == set(POINTS)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a changelog with deletes, a table with updates, and a stream."""
    folder = tmp_path_factory.mktemp("data")
    rng = random.Random(11)
    live: list[tuple[int, int]] = []
    for name in ("a", "b", "c"):
        (folder / name).mkdir()
    for number in range(FILES):
        changes = []
        for _ in range(40):
            if live and rng.random() < 0.3:
                k, x = live.pop(rng.randrange(len(live)))
                changes.append((k, x, -1))
            else:
                k, x = rng.randrange(12), rng.randrange(4)
                live.append((k, x))
                changes.append((k, x, 1))
        columns = dict(zip(("k", "x", "op"), zip(*changes, strict=True), strict=True))
        pq.write_table(
            pa.table({n: pa.array(v, pa.int64()) for n, v in columns.items()}), folder / f"a/{number}.parquet"
        )
        rows = [json.dumps({"k": rng.randrange(12), "y": rng.choice("pqr")}) for _ in range(6)]
        (folder / f"b/{number}.json").write_text("\n".join(rows) + "\n")
        lines = ["y,z", *(f"{rng.choice('pqr')},{rng.randrange(3)}" for _ in range(3))]
        (folder / f"c/{number}.csv").write_text("\n".join(lines) + "\n")
        for name, ending in (("a", "parquet"), ("b", "json"), ("c", "csv")):
            os.utime(folder / f"{name}/{number}.{ending}", (1_700_000_000 + number,) * 2)
    return folder


def run(state: Path, data: Path, **environment: str) -> int:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(state), str(data)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode not in (0, -signal.SIGKILL):
        pytest.fail(done.stderr[-3000:])
    return done.returncode


def outcome(state: Path) -> dict[str, Any]:
    """Tables, summed changes and committed epochs, read from the state alone."""
    driver = Driver(store=state)
    result: dict[str, Any] = {"epoch": driver.epoch}
    for view in ("pairs", "triples"):
        table = Counter(tuple(row.values()) for row in driver.table(view))
        summed: Counter[tuple[Any, ...]] = Counter()
        for row in driver.stream(view):
            payload = tuple(value for name, value in row.items() if not name.startswith("_"))
            summed[payload] += -1 if row["_undo"] else 1
        assert +summed == table and all(count >= 0 for count in summed.values())
        result[view] = table
    result["changes"] = [(r["_epoch"], r["_undo"], r["k"], r["x"], r["y"]) for r in driver.stream("pairs")]
    return result


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    state = tmp_path_factory.mktemp("undisturbed") / "state"
    assert run(state, data) == 0
    result = outcome(state)
    assert result["epoch"] == 2 * FILES - 1 and result["pairs"] and result["triples"]
    return result


@pytest.mark.parametrize("fault", DRIVER_FAULTS)
def test_the_driver_dies(fault: str, data: Path, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert run(state, data, REJOINDER_FAULT=fault) == -signal.SIGKILL
    assert run(state, data) == 0
    assert outcome(state) == undisturbed


@pytest.mark.parametrize("fault", WORKER_FAULTS)
def test_a_worker_dies(fault: str, data: Path, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    once = tmp_path / "once"
    state = tmp_path / "state"
    assert run(state, data, REJOINDER_FAULT=fault, REJOINDER_FAULT_ONCE=str(once)) == 0
    assert once.exists(), "the worker was not killed"
    assert outcome(state) == undisturbed

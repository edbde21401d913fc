"""A process dies at each of the named points, for real; what is there in the end is what would have been without it.

The points of the engine are tested in the test driver, which starts in a second, and those of Spark's checkpoint on
Spark, with a few of the engine's. `make test-deep` tests all of them on Spark.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.faults import POINTS
from rejoinder.testing import Driver
from tests.deep import DEEP
from tests.faults import victim

IN_WORKERS = ("scan", "round")
IN_SINKS = ("before_delivery", "in_delivery", "after_delivery")  # tests/faults/test_sinks.py
IN_EDITS = ("in_difference",)  # tests/faults/test_edits.py
SCRIPT = Path(victim.__file__)
# Where each point is met: an epoch of the first run (0 to 2) or of the second, or the definitions between them.
PLACES = {
    "in_generation": ["in_generation:-1", "in_generation:2"],
    "after_generation": ["after_generation:2"],
    "before_tasks": ["before_tasks:0"],
    "after_tasks": ["after_tasks:1", "after_tasks:3"],
    "after_emission": ["after_emission:4"],
    "after_commit": ["after_commit:1"],
    "after_collection": ["after_collection:4"],
    "in_hydration": ["in_hydration:2"],
    "after_definition": ["after_definition:2"],
}
OF_SPARK = ("in_generation", "after_generation")
ALL = [fault for places in PLACES.values() for fault in places]
IN_THE_DRIVER = [fault for fault in ALL if fault.split(":")[0] not in OF_SPARK]
ON_SPARK = ("in_generation:2", "after_generation:2")
BEFORE_COMMIT = ("before_tasks", "after_tasks", "after_emission")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the input of all epochs."""
    victim.write_input(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is there in the end if nobody dies: the same in the test driver and on Spark."""
    folder = tmp_path_factory.mktemp("undisturbed")
    victim.write_input(folder)
    victim.run(Driver(store=folder / "state", parallelism=2), folder)
    result = victim.outcome(folder / "state")
    assert result["epoch"] == victim.LAST and all(len(result[view]) > 5 for view in "vwu")
    assert {row[1] for row in result["u"]} == {3, 4}, "what the watermark has passed"
    ours = [(i, 10 * epoch + i) for epoch in range(victim.LAST + 1) for i in range(8)]
    met = [(i, t, t + more) for i, t in ours if i % 2 == 0 for more in (0, 10) if t + more < 10 * (victim.LAST + 1)]
    alone = [(i, t, None) for i, t in ours if i % 2 and t + 12 < 10 * victim.LAST + 6 - 5]
    assert result["p"] == Counter([*met, *alone]), "pairs at once, the others when no match can arrive"
    assert not any(undo for *_, undo in result["changes of p"]), "no emitted row is retracted"
    assert sum(result["p.late"].values()) == 5 * (victim.LAST - 1)
    return result


def die(folder: Path, fault: str, *arguments: str) -> None:
    """Run the flow in a process of its own that dies at a point."""
    died = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *arguments],
        env={**os.environ, "REJOINDER_FAULT": fault, "TMPDIR": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL, died.stderr


def last_epoch(fault: str) -> int:
    """The last epoch that is committed when a process dies at a point."""
    point, epoch = fault.split(":")
    return int(epoch) - (point in BEFORE_COMMIT)


@pytest.mark.parametrize("fault", IN_THE_DRIVER)
def test_the_test_driver_dies(folder: Path, undisturbed: dict[str, Any], fault: str) -> None:
    """It goes on with another number of buckets."""
    die(folder, fault, "driver")
    driver = Driver(store=folder / "state", parallelism=3)
    assert driver.epoch == last_epoch(fault)
    victim.run(driver, folder)
    assert victim.outcome(folder / "state") == undisturbed
    assert all((folder / "state" / name).exists() for name in driver._engine.version.state.files())


@pytest.mark.slow
@pytest.mark.parametrize("fault", [pytest.param(fault, marks=() if fault in ON_SPARK else DEEP) for fault in ALL])
def test_the_driver_dies(spark: SparkSession, folder: Path, undisturbed: dict[str, Any], fault: str) -> None:
    """It goes on with another number of buckets."""
    die(folder, fault)
    flow = rj.Flow(folder / "state", spark=spark, parallelism=3)
    assert flow.epoch == last_epoch(fault)
    victim.run(flow, folder)
    assert victim.outcome(folder / "state") == undisturbed
    assert all((folder / "state" / name).exists() for name in flow.engine.version.state.files())


@pytest.mark.parametrize("fault", ["scan:1", "round:4"])
def test_a_worker_dies(
    spark: SparkSession, folder: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Spark tries the task again, and the epoch goes on as if nothing had happened."""
    once = folder / "once"
    monkeypatch.setitem(spark.sparkContext.environment, "REJOINDER_FAULT", fault)
    monkeypatch.setitem(spark.sparkContext.environment, "REJOINDER_FAULT_ONCE", str(once))
    victim.run(rj.Flow(folder / "state", spark=spark, parallelism=2), folder)
    assert once.exists(), "a worker was killed"
    assert victim.outcome(folder / "state") == undisturbed


def test_every_point_has_a_test() -> None:
    """One that `make test` runs: in the test driver, on Spark, in workers, or around a delivery."""
    tested = {fault.split(":")[0] for fault in (*IN_THE_DRIVER, *ON_SPARK)} | {*IN_WORKERS, *IN_SINKS, *IN_EDITS}
    assert tested == set(POINTS), "a point in faults.py without a test, or a test without its point"
    assert set(ON_SPARK) <= set(ALL)


def test_every_point_is_reached_from_somewhere() -> None:
    sources = (path.read_text() for path in Path(rj.__file__).parent.rglob("*.py"))
    reached = {point for text in sources for point in re.findall(r'\breach\("(\w+)"', text)}
    assert reached == set(POINTS)

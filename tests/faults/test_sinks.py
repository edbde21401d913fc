"""A process dies around a delivery, for real: a sink that remembers has each epoch once, any other at least once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from tests.faults import sink_victim

SCRIPT = Path(sink_victim.__file__)
# The sinks are served in the order of their definition: the point is met first with the files.
PLACES = {"before_delivery:1": [0, 1, 2], "in_delivery:1": [0, 1, 2], "after_delivery:1": [0, 1, 2]}


@pytest.mark.slow
@pytest.mark.parametrize("fault", PLACES)
def test_the_driver_dies(spark: SparkSession, tmp_path: Path, fault: str) -> None:
    sink_victim.write_input(tmp_path)
    died = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        env={**os.environ, "REJOINDER_FAULT": fault, "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL, died.stderr
    flow = rj.Flow(tmp_path / "state", spark=spark, parallelism=2)
    assert flow.epoch == 1
    commits = sorted((tmp_path / "state" / "spark").rglob("commits/0"))
    for commit in commits:
        commit.unlink()
    sink_victim.run(flow, tmp_path)
    check(flow, tmp_path)
    noted = [int(line) for line in (tmp_path / "noted").read_text().split()]
    assert sorted(set(noted)) == PLACES[fault] and noted == sorted(noted)


def test_sparks_last_commit_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    """Spark plans an epoch again that is committed and delivered."""
    sink_victim.write_input(tmp_path)
    sink_victim.run(rj.Flow(tmp_path / "state", spark=spark, parallelism=2), tmp_path)
    commits = list((tmp_path / "state" / "spark").rglob(f"commits/{sink_victim.EPOCHS - 1}"))
    assert commits
    for commit in commits:
        commit.unlink()
    flow = rj.Flow(tmp_path / "state", spark=spark, parallelism=2)
    sink_victim.run(flow, tmp_path)
    check(flow, tmp_path)
    assert (tmp_path / "noted").read_text().split() == ["0", "1", "2"]


def check(flow: rj.Flow, folder: Path) -> None:
    """The files hold each epoch's changes once, and add up to the view."""
    rows = [row for path in sorted((folder / "out").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert Counter(row["_epoch"] for row in rows) == {0: 30, 1: 55, 2: 55}
    counts: Counter[tuple[int, int]] = Counter()
    for row in rows:
        counts[row["id"], row["x"]] += row["_diff"]
    assert +counts == Counter((row.id, row.x) for row in flow.table("v").collect())

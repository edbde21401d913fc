"""A driver dies while changes are pending for the clock: they are emitted once, whatever the clock shows afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from tests.deep import DEEP
from tests.faults import victim


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["after_emission:3", pytest.param("after_commit:3", marks=DEEP)])
def test_pending_changes_are_emitted_once(spark: SparkSession, tmp_path: Path, fault: str) -> None:
    """Three epochs have input; that there is a fourth is the work of a tick."""
    victim.write_input(tmp_path)
    died = subprocess.run(
        [sys.executable, victim.__file__, str(tmp_path), "settle"],
        env={**os.environ, "REJOINDER_FAULT": fault, "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL, died.stderr
    victim.settle(rj.Flow(tmp_path / "state", spark=spark, parallelism=3), tmp_path)
    result = victim.outcome(tmp_path / "state", ["v", "paced"])  # asserts that changes add up to the table
    assert result["paced"] == result["v"] and len(result["v"]) > 5
    assert sum(result["changes of paced"].values()) <= sum(result["changes of v"].values()), "netted, not doubled"

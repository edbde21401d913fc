"""`Flow.vacuum` beside a flow on Spark: what was read goes, and the flow goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj

pytestmark = pytest.mark.spark


def test_rows_that_were_read_and_old_checkpoints_go(spark: SparkSession, tmp_path: Path) -> None:
    def opened(value: int) -> rj.Flow:
        flow = rj.Flow(tmp_path / "state", spark=spark, parallelism=2)
        flow.sql("CREATE STREAM IF NOT EXISTS t (a BIGINT); CREATE VIEW IF NOT EXISTS v AS SELECT a FROM t")
        flow.insert("t", [{"a": value}])
        flow.run()
        return flow

    flow = [opened(value) for value in range(4)][-1]  # a driver each
    done = flow.vacuum()
    kinds = done.by_kind()
    assert kinds["inserted rows, read"][0] == 3 and done.bytes > 0
    assert len(list((tmp_path / "state" / "inbox").rglob("*.arrow"))) == 1
    assert len(list((tmp_path / "state" / "spark").iterdir())) == 2
    flow.insert("t", [{"a": 4}])
    flow.run()
    again = rj.Flow(tmp_path / "state", spark=spark, parallelism=3)
    again.insert("t", [{"a": 5}])
    again.run()
    assert sorted(row.a for row in again.table("v").collect()) == list(range(6))

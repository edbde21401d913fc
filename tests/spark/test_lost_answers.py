"""A flow on Spark whose commit loses its answer: the next run finishes it, and no row comes twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.errors import Unconfirmed
from rejoinder.store.commits.manifest import name_of
from tests.unreliable_store import unreliable

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("fate", ["lost", "late"])
def test_a_lost_answer_commits_rows_once(spark: SparkSession, tmp_path: Path, fate: str) -> None:
    flow = rj.Flow(tmp_path / "state", spark=spark, parallelism=2)
    flow.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
    line = unreliable(flow.engine.store)
    flow.insert("t", [{"a": 0}])
    flow.run()
    flow.insert("t", [{"a": 1}])
    assert flow.engine.version.manifest is not None
    version = flow.engine.version.manifest.version
    line.next(name_of(version + 1), fate)
    with pytest.raises(Unconfirmed):
        flow.run()
    flow.insert("t", [{"a": 2}])
    flow.run()
    line.arrive()
    flow.insert("t", [{"a": 3}])
    flow.run()
    assert sorted(row.a for row in flow.table("v").collect()) == [0, 1, 2, 3]

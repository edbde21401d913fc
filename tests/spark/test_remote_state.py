"""A flow whose state is on S3: runs and manifests there, Spark's checkpoint on a disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.errors import Unsupported
from rejoinder.store.objects.object_store import ObjectStore, Option
from tests.spark.files import write_rows
from tests.spark.rows import bag, summed, view


def test_a_flow_on_s3(
    spark: SparkSession, s3_store: ObjectStore, s3_options: dict[str, Option], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    expected = []
    options: dict[str, Any] = {**s3_options, "spark": spark, "checkpoint": str(tmp_path / "checkpoint")}
    for number in range(3):
        flow = rj.Flow(s3_store.url, parallelism=number + 1, **options)
        flow.sql(f"CREATE STREAM IF NOT EXISTS a (id BIGINT) USING parquet OPTIONS (path '{tmp_path}/in')")
        flow.sql("CREATE TABLE IF NOT EXISTS b (id BIGINT, y INT, PRIMARY KEY (id))")
        flow.sql("CREATE VIEW IF NOT EXISTS v AS SELECT a.id, y FROM a JOIN b ON a.id = b.id")
        write_rows(tmp_path / "in" / f"{number}.parquet", [{"id": i} for i in range(50)])
        flow.insert("b", [{"id": i, "y": number} for i in range(10)])
        flow.run()
        expected = [(i, number) for i in range(10)] * (number + 1)
        assert flow.epoch == number and bag(flow.table("v")) == bag(expected)
    flow = rj.Flow(s3_store.url, **options)
    assert view(flow, "v", as_of=1) == bag([(i, 1) for i in range(10)] * 2)
    assert summed(flow.sql("SELECT STREAM * FROM v").collect()) == bag(expected)
    secret = str(s3_options["secret"])
    assert not any(secret in path.read_text(errors="ignore") for path in tmp_path.rglob("*") if path.is_file())


def test_a_session_that_is_not_of_this_process(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"cannot run on a `builtins\.object`[\s\S]*Spark Connect[\s\S]*Hint: pass"):
        rj.Flow(tmp_path, spark=object())  # type: ignore[arg-type]

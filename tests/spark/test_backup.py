"""`Flow.backup` beside a running flow on Spark, and sinks that go on exactly once after a restore."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.errors import SinkFailed
from tests.spark.files import write_rows
from tests.spark.test_other_databases import DRIVER, Derby

pytestmark = pytest.mark.spark


def opened(spark: SparkSession, state: Path, folder: Path) -> rj.Flow:
    flow = rj.Flow(state, spark=spark, parallelism=2)
    flow.sql(
        f"CREATE STREAM IF NOT EXISTS a (id BIGINT) USING parquet OPTIONS (path '{folder}/in', maxFilesPerTrigger '1');"
        "CREATE STREAM IF NOT EXISTS b (id BIGINT);"
        "CREATE VIEW IF NOT EXISTS v AS SELECT id FROM a UNION ALL SELECT id FROM b"
    )
    flow.sink("v", "parquet", path=folder / "out")
    return flow


def in_files(folder: Path) -> list[int]:
    return sorted(i for file in folder.glob("*.parquet") for i in pq.read_table(file).column("id").to_pylist())


def in_view(flow: rj.Flow) -> list[int]:
    return sorted(row["id"] for row in flow.arrow("v").to_pylist())


def test_a_hot_backup_is_restored(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(12):
        write_rows(tmp_path / f"in/{number:03}.parquet", [{"id": number}])
    flow = opened(spark, tmp_path / "state", tmp_path)
    flow.start()
    while flow.epoch < 3:
        time.sleep(0.05)
    flow.insert("b", [{"id": 100}])
    epochs = [flow.backup(tmp_path / "copy")]
    while flow.epoch < 11:
        epochs.append(flow.backup(tmp_path / "copy"))
    flow.stop()
    flow.run()
    last = flow.backup(tmp_path / "copy")
    assert epochs == sorted(epochs) and last >= epochs[-1]
    everything = in_view(flow)
    assert everything == [*range(12), 100] == in_files(tmp_path / "out")
    write_rows(tmp_path / "in/900.parquet", [{"id": 900}])
    restored = opened(spark, tmp_path / "copy", tmp_path)
    assert restored.epoch == last and in_view(restored) == everything
    restored.run()
    assert in_view(restored) == [*everything, 900] == in_files(tmp_path / "out"), "none skipped, none doubled"
    older = opened(spark, tmp_path / "state", tmp_path)
    with pytest.raises(SinkFailed, match="has epoch"):
        older.run()


def test_rows_that_were_inserted_and_not_read_are_copied(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    flow = opened(spark, tmp_path / "state", tmp_path)
    flow.insert("b", [{"id": 1}])
    flow.run()
    flow.insert("b", [{"id": 2}])
    flow.backup(tmp_path / "copy")
    shutil.rmtree(tmp_path / "state")
    restored = opened(spark, tmp_path / "copy", tmp_path)
    restored.run()
    restored.run()
    assert in_view(restored) == in_files(tmp_path / "out") == [1, 2]


def test_a_database_that_is_ahead_of_the_backup_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    def started(state: Path) -> rj.Flow:
        flow = rj.Flow(state, spark=spark, parallelism=2)
        flow.sql("CREATE STREAM IF NOT EXISTS b (id BIGINT); CREATE VIEW IF NOT EXISTS v AS SELECT id FROM b")
        return flow

    flow = started(tmp_path / "state")
    derby = Derby(flow, tmp_path.name)
    derby.update('CREATE TABLE log (id BIGINT, "_epoch" BIGINT, "_diff" BIGINT)')

    def sink(flow: rj.Flow) -> rj.Flow:
        flow.sink("v", "jdbc", name="l", url=derby.url, driver=DRIVER, dbtable="log")
        return flow

    sink(flow).insert("b", [{"id": 1}])
    flow.run()
    flow.backup(tmp_path / "copy")
    flow.backup(tmp_path / "later")
    restored = sink(started(tmp_path / "copy"))
    restored.insert("b", [{"id": 2}])
    restored.run()
    assert derby.number("SELECT SUM(id) FROM log") == 3 and derby.number("SELECT COUNT(*) FROM log") == 2
    behind = sink(started(tmp_path / "later"))
    behind.insert("b", [{"id": 5}])
    with pytest.raises(SinkFailed, match="has epoch 1, and the flow is at epoch 0"):
        behind.run()
    assert derby.number("SELECT SUM(id) FROM log") == 3

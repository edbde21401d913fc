"""Spark's own stream-stream join: append mode, state in memory or in RocksDB, with a checkpoint of every micro-batch.

It knows no retractions, so W2 is run on the inserts alone. W1's watermarks are moved past the end by the sentinel rows,
which have a negative number and are not counted. Input is the same Parquet as Rejoinder's, one file of each
table per micro-batch. The same query runs once over a handful of rows before the clock starts: classes are loaded.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.engines import protocol
from benchmarks.engines.protocol import Task

STATE_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
PROVIDERS = {"": "HDFSBackedStateStoreProvider", "rocksdb": "RocksDBStateStoreProvider"}
DELAY = "5 seconds"
WITHIN = "o.order_id = d.order_id AND d.ts >= o.ts AND d.ts <= o.ts + INTERVAL 1 HOUR"
COUNTED = "CASE WHEN d.ts IS NULL THEN o.order_id ELSE 2 * o.order_id END"
SCHEMAS = {
    ("W1", "orders"): "order_id BIGINT, cust BIGINT, ts TIMESTAMP",
    ("W1", "deliveries"): "order_id BIGINT, ts TIMESTAMP",
    ("W2", "left"): "op BIGINT, k BIGINT, v BIGINT",
    ("W2", "right"): "op BIGINT, k BIGINT, v BIGINT",
    ("W3", "customer"): "c_custkey BIGINT, c_mktsegment STRING",
    ("W3", "orders"): "o_orderkey BIGINT, o_custkey BIGINT",
    ("W3", "lineitem"): "l_orderkey BIGINT, l_extendedprice DOUBLE, l_discount DOUBLE",
}


def session(task: Task) -> SparkSession:
    """A session as a user would have it on this machine, with as many partitions as cores and half of the memory."""
    memory_mb = psutil.virtual_memory().total // 2 >> 20
    spark = (
        SparkSession.builder.master(f"local[{task.cores}]")
        .appName("benchmark")
        .config("spark.driver.memory", f"{memory_mb}m")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", task.cores)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stateStore.providerClass", f"{STATE_PACKAGE}.{PROVIDERS[task.store]}")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def source(spark: SparkSession, data: str, table: str, files: int) -> DataFrame:
    stream = spark.readStream.schema(SCHEMAS[Path(data).name, table]).option("maxFilesPerTrigger", files)
    return stream.parquet(str(Path(data) / "parquet" / table))


def query(spark: SparkSession, workload: str, data: str, files: int = 1) -> DataFrame:
    """The workload as a streaming DataFrame whose column `c` is summed up as checksum."""
    tables = {name: source(spark, data, name, files) for name in _tables(workload)}
    if workload in ("W1", "W1L"):
        orders, deliveries = (tables[name].withWatermark("ts", DELAY) for name in ("orders", "deliveries"))
        how, counted = ("left", COUNTED) if workload == "W1L" else ("inner", "o.order_id")
        joined = orders.alias("o").join(deliveries.alias("d"), fn.expr(WITHIN), how)
        return joined.select(fn.expr(f"{counted} AS c"), "o.cust", fn.expr("d.ts AS delivered"))
    if workload == "W2":
        left, right = (tables[side].where("op = 1").select("k", "v").alias(side) for side in ("left", "right"))
        return left.join(right, fn.expr("left.k = right.k")).select("left.k", fn.expr("left.v + right.v AS c"))
    building = tables["customer"].where("c_mktsegment = 'BUILDING'")
    lines = tables["lineitem"].join(tables["orders"], fn.expr("l_orderkey = o_orderkey"))
    joined = lines.join(building, fn.expr("o_custkey = c_custkey"))
    return joined.select(fn.expr("o_orderkey AS c"), fn.expr("l_extendedprice * (1 - l_discount) AS revenue"))


def start(result: DataFrame, checkpoint: str) -> StreamingQuery:
    """Run until all files are read. The rows go nowhere; they are counted and summed on the way."""
    # A filter would be pushed below the watermarks, and the sentinels would move nothing.
    counted = (fn.expr("count_if(c >= 0)").alias("rows"), fn.expr("sum(greatest(c, 0L))").alias("checksum"))
    observed = result.observe("check", *counted)
    writer = observed.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    return writer.option("checkpointLocation", checkpoint).start()


def checks(progress: list[Any]) -> tuple[int, int]:
    """Add up what every micro-batch observed."""
    seen = [batch.observedMetrics["check"] for batch in progress if "check" in batch.observedMetrics]
    return sum(row.rows for row in seen), sum(row.checksum or 0 for row in seen)


def _tables(workload: str) -> tuple[str, ...]:
    return {
        **dict.fromkeys(("W1", "W1L"), ("orders", "deliveries")),
        "W2": ("left", "right"),
        "W3": ("customer", "orders", "lineitem"),
    }[workload]


def main() -> None:
    task = Task.from_argument(sys.argv[1])
    spark = session(task)
    start(query(spark, task.workload, task.warm, files=10), f"{task.state}/warm").awaitTermination()
    result = query(spark, task.workload, task.data)

    protocol.started()
    running = start(result, f"{task.state}/checkpoint")
    running.awaitTermination()
    protocol.finished()

    progress = list(running.recentProgress)
    rows_out, checksum = checks(progress)
    protocol.result(rows_out, checksum, epochs=len(progress))
    spark.stop()


if __name__ == "__main__":
    main()

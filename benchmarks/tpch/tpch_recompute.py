"""Computing the views again: each query by DuckDB on tables in memory, and by batch Spark on Parquet files.

`python -m benchmarks.tpch.tpch_recompute FOLDER CORES` runs Spark's part in a process of its own, with the session
that the other benchmarks give to Spark. Both run a query once before it is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from benchmarks.engines.protocol import Task
from benchmarks.engines.spark_native import session
from benchmarks.measure import tree_cpu_s
from benchmarks.tpch.tpch_rows import TABLES, final_table
from tests.oracle.tpch_answers import QUERIES

Rows = list[tuple[Any, ...]]
PREFIX = "@tpch "


def by_duckdb(folder: Path, cores: int) -> tuple[dict[str, float], dict[str, Rows]]:
    """CPU seconds and rows of each query."""
    database = duckdb.connect(config={"threads": cores})
    for table in TABLES:
        database.execute(f"CREATE TABLE {table} AS FROM '{final_table(folder, table)}'")
    seconds, answers = {}, {}
    for name, query in QUERIES.items():
        seconds[name], answers[name] = _measured(partial(_fetched, database, query))
    return seconds, answers


def by_spark(folder: Path, cores: int, log: Path) -> tuple[dict[str, float], dict[str, Rows]]:
    """The same by Spark, in another process."""
    seconds, answers = {}, {}
    command = [sys.executable, "-m", "benchmarks.tpch.tpch_recompute", str(folder), str(cores)]
    with log.open("w") as noise, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=noise, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(PREFIX):
                name, seconds[name], rows = json.loads(line.removeprefix(PREFIX))
                answers[name] = [tuple(row) for row in rows]
    if process.returncode:
        raise RuntimeError(f"Spark failed; see {log}")
    return seconds, answers


def _fetched(database: duckdb.DuckDBPyConnection, query: str) -> Rows:
    return database.execute(query).fetchall()


def _collected(spark: SparkSession, query: str) -> Rows:
    return [tuple(row) for row in spark.sql(query).collect()]


def _measured(run: Callable[[], Rows]) -> tuple[float, Rows]:
    run()
    before = tree_cpu_s()
    result = run()
    return tree_cpu_s() - before, result


def _spark_answers(folder: Path, cores: int) -> Iterator[tuple[str, float, Rows]]:
    spark = session(Task("tpch", str(folder), "", "", cores, 0, 0))
    for table in TABLES:
        spark.read.parquet(str(final_table(folder, table))).createOrReplaceTempView(table)
    for name, query in QUERIES.items():
        seconds, rows = _measured(partial(_collected, spark, query))
        yield name, seconds, rows
    spark.stop()


def _plain(value: object) -> float | str:
    """A value that JSON has no type for: a number, or the text of a date."""
    return str(value) if hasattr(value, "year") else float(str(value))


if __name__ == "__main__":
    for answer in _spark_answers(Path(sys.argv[1]), int(sys.argv[2])):
        print(PREFIX + json.dumps(answer, default=_plain), flush=True)

"""Spark's `window` and ours: the same windows, types, names and rows, from batch Spark and from the Driver."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rejoinder.formats.text.plain_rows import plain_rows
from rejoinder.testing import Driver
from tests.spark.rows import bag

MOMENTS = [
    None,
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1),
    datetime(1900, 2, 28, 3, 4, 5),
    datetime(2026, 1, 1, 12, 4, 59, 999999),
    datetime(2026, 1, 1, 12, 5),
    datetime(9990, 12, 31, 23, 0),
]
ROWS = pa.table(
    {
        "id": pa.array(range(len(MOMENTS)), pa.int32()),
        "t": pa.array(MOMENTS, pa.timestamp("us", tz="UTC")),
        "n": pa.array(MOMENTS, pa.timestamp("us")),
        "d": pa.array([None if moment is None else date(moment.year, moment.month, 3) for moment in MOMENTS]),
    }
)
QUERIES = [
    "SELECT id, window(t, '5 minutes') FROM s",
    "SELECT id, window(n, '7 hours') AS w FROM s",
    "SELECT id, window(d, '2 days') AS w FROM s",
    "SELECT id, window(t, '1 week').start AS w FROM s",
    "SELECT id, window(t, 'interval 1 hour 30 minutes') AS w FROM s WHERE id > 1",
    "SELECT id, window(t, '10 minutes', '5 minutes') AS w FROM s",
    "SELECT id, window(n, '12 minutes', '5 minutes') AS w FROM s",
    "SELECT id, window(t, '1 hour', '1 hour', '15 minutes') AS w FROM s",
    "SELECT id, window(t, '1 day', '12 hours', '-1 hour') AS w FROM s",
    "SELECT id, window(n, '7 days', '7 days', '4 days') FROM s",
    "SELECT window(t, '5 minutes'), COUNT(*) AS n FROM s GROUP BY window(t, '5 minutes')",
    "SELECT window.start, window.end, COUNT(id) AS n FROM s GROUP BY window(t, '20 minutes', '10 minutes')",
    "SELECT WINDOW.end FROM (SELECT window(t, '5 minutes') FROM s)",
    "SELECT a.id, b.id AS other FROM (SELECT id, window(t, '1 day') AS w FROM s) a "
    "JOIN (SELECT id, window(n, '1 day') AS w FROM s) b ON a.w.start = b.w.start",
    "SELECT a.id, b.id AS other FROM (SELECT id, window(t, '1 day') AS w FROM s) a "
    "LEFT JOIN (SELECT id, window(t, '1 day') AS w FROM s) b USING (w)",
]


@pytest.fixture(scope="module")
def driver(spark: SparkSession) -> Driver:
    spark.createDataFrame(ROWS).createOrReplaceTempView("s")
    driver = Driver(parallelism=2)
    driver.sql("CREATE STREAM s (id INT, t TIMESTAMP, n TIMESTAMP_NTZ, d DATE)")
    driver.insert("s", *ROWS.to_pylist())
    driver.step()
    return driver


@pytest.mark.parametrize("query", QUERIES)
def test_windows_are_those_of_spark(query: str, driver: Driver, spark: SparkSession) -> None:
    wanted, found = spark.sql(query).toArrow(), driver.sql(query)
    assert found.columns == wanted.column_names
    assert bag(found) == bag(plain_rows(wanted))


@pytest.mark.parametrize(
    "call",
    ["window(t, '0 minutes')", "window(t, '-1 minute')", "window(t, '5 minutes', '6 minutes')", "window(id, '1 day')"],
)
def test_what_spark_refuses_is_refused(call: str, driver: Driver, spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    from rejoinder.errors import PlanningError

    with pytest.raises(PySparkException):
        spark.sql(f"SELECT {call} AS w FROM s").collect()
    with pytest.raises(PlanningError):
        driver.sql(f"SELECT {call} AS w FROM s")

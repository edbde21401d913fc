"""Queries with window functions, answered by batch Spark and by us: names and rows. Ids are unique: nothing is tied."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from rejoinder.testing import Driver

pytestmark = pytest.mark.slow

ROWS: list[tuple[Any, ...]] = [
    (at, None if at % 7 == 0 else at % 3, None if at % 5 == 0 else at * 37 % 11) for at in range(24)
]
OVER = "OVER (PARTITION BY g ORDER BY x, id)"
BY_VALUE = "OVER (PARTITION BY g ORDER BY x DESC)"
CALLS = (
    f"row_number() {OVER}",
    f"rank() {BY_VALUE}",
    f"dense_rank() {BY_VALUE}",
    f"percent_rank() {BY_VALUE}",
    f"cume_dist() {BY_VALUE}",
    f"ntile(3) {OVER}",
    f"lag(x) {OVER}",
    f"lead(x, 2, -1) {OVER}",
    f"lag(x) IGNORE NULLS {OVER}",
    f"first_value(x) {OVER}",
    f"last_value(x) IGNORE NULLS {OVER}",
    f"nth_value(x, 2) {OVER}",
    f"sum(x) {BY_VALUE}",
    f"avg(x) {BY_VALUE}",
    "max(x) OVER (PARTITION BY g)",
    "count(*) OVER ()",
    "sum(x) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "count(x) OVER (PARTITION BY g ORDER BY x RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING)",
    "min(x) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
)
NAMED = (
    *(call for call in CALLS if "IGNORE NULLS" not in call),
    "rank() OVER (ORDER BY t.x DESC NULLS FIRST, id + 1)",
    "ntile() OVER (ORDER BY x)",
    "LAG(x, -2) OVER (ORDER BY x)",
    "lag(x, 0) OVER (ORDER BY x)",
    "nth_value(x, 3) IGNORE NULLS OVER (ORDER BY x)",
    "first(x) OVER (ORDER BY x)",
    "sum(x) FILTER (WHERE x > 1) OVER w",
    "sum(x) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "sum(x) OVER (ORDER BY id ROWS BETWEEN -3 FOLLOWING AND 2147483647 FOLLOWING)",
    "sum(x) OVER (ORDER BY d RANGE BETWEEN 3 PRECEDING AND 1.5 FOLLOWING)",
    "sum(x) OVER (ORDER BY n RANGE 3 PRECEDING)",
    "sum(x) OVER (ORDER BY ts RANGE INTERVAL 1 HOUR PRECEDING)",
    "sum(x) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '90' MINUTE PRECEDING AND INTERVAL '2' MINUTES FOLLOWING)",
    "sum(x) OVER (ORDER BY dt RANGE INTERVAL 2 DAYS PRECEDING)",
    "x - avg(x) OVER (PARTITION BY g) + 1",
    "CASE WHEN row_number() OVER (DISTRIBUTE BY g SORT BY x) = 1 THEN 1 END",
    "CAST(sum(x) OVER (PARTITION BY g, 'a') AS INT)",
)
OF_GROUPS = ("sum(sum(x)) OVER (ORDER BY g)", "rank() OVER (ORDER BY sum(t.x) DESC)", "g")


def test_window_functions_without_alias_are_named_as_by_spark(spark: SparkSession) -> None:
    columns = "id INT, g INT, x INT, d DOUBLE, n BIGINT, ts TIMESTAMP, dt DATE"
    spark.createDataFrame([], columns).createOrReplaceTempView("t")
    driver = Driver()
    driver.sql(f"CREATE CHANGELOG t ({columns})")
    queries = (
        f"SELECT {', '.join(NAMED)} FROM t WINDOW w AS (PARTITION BY g ORDER BY x)",
        f"SELECT {', '.join(OF_GROUPS)} FROM t GROUP BY g",
    )
    for at, query in enumerate(queries):
        driver.sql(f"CREATE VIEW v{at} AS {query}")
    driver.insert("t", {"id": 1})
    driver.step()
    for at, query in enumerate(queries):
        assert list(driver.table(f"v{at}")[0]) == spark.sql(query).columns


def test_window_functions_are_those_of_spark(spark: SparkSession) -> None:
    listed = ", ".join(f"{call} AS w{at}" for at, call in enumerate(CALLS))
    queries = [f"SELECT id, g, x, {listed} FROM t", "SELECT id, x FROM t ORDER BY x DESC, id LIMIT 5 OFFSET 2"]
    spark.createDataFrame(ROWS, "id INT, g INT, x INT").createOrReplaceTempView("t")
    driver = Driver()
    driver.sql("CREATE CHANGELOG t (id INT, g INT, x INT)")
    for at, query in enumerate(queries):
        driver.sql(f"CREATE VIEW v{at} AS {query}")
    for row in ROWS:
        driver.insert("t", dict(zip(("id", "g", "x"), row, strict=True)))
        if row[0] % 6 == 0:
            driver.step()
    driver.step()
    for at, query in enumerate(queries):
        batch = spark.sql(query)
        found = driver.table(f"v{at}")
        assert sorted((tuple(row.values()) for row in found), key=repr) == sorted(map(tuple, batch.collect()), key=repr)
        assert list(found[0]) == batch.columns

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

"""TPC-H: after the last epoch of random changes, each of the 22 views equals batch Spark on the same tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from tests.deep import DEEP, one_seed
from tests.oracle.tpch_data import SCHEMA, Database
from tests.oracle.tpch_flow import compare, epochs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("scale", "changes"),
    [pytest.param(0.0, 30, marks=DEEP), pytest.param(0.05, 3000, marks=DEEP)],
    ids=["tiny", "SF 0.05"],
)
def test_the_last_epoch_equals_batch_spark(spark: SparkSession, scale: float, changes: int) -> None:
    database = Database(one_seed() + 1, scale)
    [driver] = deque(epochs(database, 7, count=3, changes=changes), maxlen=1)
    _register(spark, database)

    def answer(query: str) -> Iterable[Iterable[Any]]:
        return spark.sql(query).collect()

    compare(driver, answer)


def _register(spark: SparkSession, database: Database) -> None:
    """Make each table a temporary view, with the types of the sources."""
    for table, columns in SCHEMA.items():
        declared = columns.partition(", PRIMARY KEY")[0]
        spark.createDataFrame(database.rows(table), schema=declared).createOrReplaceTempView(table)

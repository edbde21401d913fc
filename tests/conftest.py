"""One JVM for all tests that need Spark: starting one takes seconds. Tests that do not ask for it start none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMED = "spark.hadoop.mapreduce.job.maps"  # a setting of the user's, of a kind that we take out where it is Hadoop's


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that `Flow` makes for itself, on two cores; batch queries to compare with shuffle into two parts."""
    from rejoinder.exchange.session import make_session

    session = make_session(2, settings={"spark.sql.shuffle.partitions": "2", NAMED: "7"})
    yield session
    session.stop()

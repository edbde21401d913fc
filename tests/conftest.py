"""One JVM for all tests that need Spark: starting one takes seconds. Tests that do not ask for it start none.

Tests that are marked `deep` are left out, unless `make test-deep` runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.deep import IS_DEEP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMED = "spark.hadoop.mapreduce.job.maps"  # a setting of the user's, of a kind that we take out where it is Hadoop's


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for `make test-deep`."""
    deep = [] if IS_DEEP else [item for item in items if item.get_closest_marker("deep")]
    if deep:
        config.hook.pytest_deselected(items=deep)
        items[:] = [item for item in items if item not in set(deep)]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that `Flow` makes for itself, on two cores; batch queries to compare with shuffle into two parts."""
    from rejoinder.exchange.session import make_session

    session = make_session(2, settings={"spark.sql.shuffle.partitions": "2", NAMED: "7"})
    yield session
    session.stop()

"""One JVM for all tests that need Spark: starting one takes seconds. Tests that do not ask for it start none.

Tests that are marked `deep` are left out, unless `make test-deep` runs them. With `--dist loadfile` the fixtures of a
file are made once; files with slow tests come first, so that no process is left with one in the end.
Hypothesis tries few examples, the same each time; the long search is in `tests/oracle`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from rejoinder.host.caps import caps, use_caps
from tests.deep import IS_DEEP, TIMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "short", max_examples=25 * TIMES if IS_DEEP else 10, derandomize=not IS_DEEP, deadline=None, print_blob=True
)
settings.load_profile("short")

pytest_plugins = ["tests.stores"]

NAMED = "spark.hadoop.mapreduce.job.maps"  # a setting of the user's, of a kind that we take out where it is Hadoop's


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for `make test-deep`, and put files with slow tests first."""
    deep = set() if IS_DEEP else {item for item in items if item.get_closest_marker("deep")}
    if deep:
        config.hook.pytest_deselected(items=list(deep))
        items[:] = [item for item in items if item not in deep]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def _same_caps() -> Iterator[None]:
    """Caps are those of the process: what a test sets must not reach the next one."""
    before = caps()
    yield
    use_caps(before)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that `Flow` makes for itself, on two cores; batch queries to compare with shuffle into two parts."""
    from rejoinder.exchange.session.spark_session import make_session

    session = make_session(2, settings={"spark.sql.shuffle.partitions": "2", NAMED: "7"})
    yield session
    session.stop()

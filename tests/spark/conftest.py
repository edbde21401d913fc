"""Flows on the session of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from tests.spark.broker import Broker, Client

OpenFlow = Callable[..., rj.Flow]
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.spark)


@pytest.fixture
def state(tmp_path: Path) -> str:
    """A folder for the state of a flow."""
    return str(tmp_path / "state")


@pytest.fixture
def open_flow(spark: SparkSession, state: str) -> Iterator[OpenFlow]:
    """Open a flow on the test's state; each call is a restart."""
    opened: list[rj.Flow] = []

    def make(**options: Any) -> rj.Flow:
        flow = rj.Flow(state, spark=spark, **{"parallelism": 2, **options})
        opened.append(flow)
        return flow

    yield make
    for flow in opened:
        if flow.is_running:
            flow.stop()


@pytest.fixture
def flow(open_flow: OpenFlow) -> rj.Flow:
    """A flow with two buckets on a new state."""
    return open_flow()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker that runs; it is killed in the end."""
    made = Broker(tmp_path_factory.mktemp("broker"))
    try:
        made.start()
        yield made
    finally:
        made.kill()


@pytest.fixture(scope="session")
def client(spark: SparkSession, broker: Broker) -> Client:
    """What tests do to the broker. The connector is fetched into the session that runs already."""
    return Client(spark, broker.address)

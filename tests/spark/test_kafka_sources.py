"""Topics of a real broker as sources: formats, keys, tombstones, places of records, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.exchange.packages import KAFKA, SETTING, provide
from tests.spark.broker import Broker, Client, Record

# The registry that tests may use holds the token provider of Spark 4.0 only; users' registries hold the one asked for.
TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_{scala}"
PACKAGES = f"org.apache.spark:spark-sql-kafka-0-10_{{scala}}:{{spark}}?exclude={TOKENS},{TOKENS}:4.0.0?transitive=false"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that runs; it is killed in the end."""
    made = Broker(tmp_path_factory.mktemp("broker"))
    try:
        made.start()
        yield made
    finally:
        made.kill()


@pytest.fixture(scope="module")
def client(spark: SparkSession, broker: Broker) -> Client:
    """The connector is fetched into the session that runs already."""
    spark.conf.set(SETTING + KAFKA.name, PACKAGES)
    provide(spark, KAFKA)
    return Client(spark, broker.address)


def rows(flow: rj.Flow, view: str) -> list[dict[str, Any]]:
    return sorted(flow.arrow(view).to_pylist(), key=str)


def test_json(flow: rj.Flow, broker: Broker, client: Client) -> None:
    """Values, keys, time, place and headers of records become columns; what cannot be read is told with its place."""
    client.create("clicks", 2)
    flow.sql(
        f"""CREATE STREAM clicks (id BIGINT, page STRING, user STRING, ts TIMESTAMP, p INT, o BIGINT,
              h ARRAY<STRUCT<key: STRING, value: BINARY>>, WATERMARK ts DELAY OF INTERVAL 1 SECOND)
            USING kafka OPTIONS (bootstrap '{broker.address}', topic 'clicks', key 'user', timestamp 'ts',
              partition 'p', offset 'o', headers 'h', malformed 'divert');
            CREATE VIEW v AS SELECT id, page, user, UNIX_MILLIS(ts) AS ts, p, o, h[0].key AS h FROM clicks"""
    )
    client.send(
        "clicks",
        [
            Record('{"id": 1, "page": "a", "more": {}}', "ada", 0, 1000, {"trace": b"x"}),
            Record('{"id": 2', "ada", 0, 1001),
            Record(' {"id": 3}\n', None, 1, 1002),
            Record(b"\xff\xfe", None, 1, 1003),
        ],
    )
    assert len(flow.run()) == 1
    assert rows(flow, "v") == [
        {"id": 1, "page": "a", "user": "ada", "ts": 1000, "p": 0, "o": 0, "h": "trace"},
        {"id": 3, "page": None, "user": None, "ts": 1002, "p": 1, "o": 0, "h": None},
    ]
    rejected = rows(flow, "clicks.rejected")
    assert [(row["topic"], row["partition"], row["offset"], row["text"]) for row in rejected] == [
        ("clicks", 0, 1, '{"id": 2'),
        ("clicks", 1, 1, "\ufffd\ufffd"),
    ]
    client.send("clicks", [Record('{"id": 4}', "bob", 1)])
    flow.run()
    assert {row["id"] for row in rows(flow, "v")} == {1, 3, 4}, "it goes on where it was"

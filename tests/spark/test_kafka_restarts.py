"""A time-bounded join over two topics, one partition of each idle, while the broker and the driver are killed.

Its result goes to a third topic, where each change of an epoch is once or, if the driver died while it sent it, again.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.exchange.session.jars import KAFKA, SETTING
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import open_store
from tests.deep import DEEP, one_seed
from tests.spark.broker import PACKAGES, Broker, Client, Record

SECONDS = 240
BATCHES, ROWS, SPAN, WITHIN = 3, 30, 30, 10
FLOW = """
CREATE STREAM impressions (id BIGINT, ts BIGINT, WATERMARK ts DELAY OF {delay})
  USING kafka OPTIONS (bootstrap '{address}', topic 'impressions', idle_after '1 second');
CREATE STREAM clicks (id BIGINT, ts BIGINT, WATERMARK ts DELAY OF {delay})
  USING kafka OPTIONS (bootstrap '{address}', topic 'clicks', idle_after '1 second');
CREATE VIEW v AS SELECT i.id, i.ts AS seen, c.ts AS clicked FROM impressions i LEFT JOIN clicks c
  ON i.id = c.id AND c.ts BETWEEN i.ts AND i.ts + {within} EMIT FINAL;
CREATE SINK s FROM v USING kafka OPTIONS (bootstrap '{address}', topic 'joined', kafka.max.block.ms '{patience}');
"""
Rows = list[tuple[int, int]]
Row = tuple[int, int, int | None]


def batch(chance: random.Random, number: int) -> Rows:
    """Ids and times of a span, in no order."""
    return [(chance.randrange(12), number * SPAN + chance.randrange(SPAN)) for _ in range(ROWS)]


def joined(impressions: Rows, clicks: Rows) -> Counter[Row]:
    """What the join is as a batch."""
    result: Counter[Row] = Counter()
    for key, seen in impressions:
        found: list[int | None] = [at for other, at in clicks if other == key and seen <= at <= seen + WITHIN]
        result.update((key, seen, at) for at in found or [None])
    return result


def view(flow: rj.Flow) -> Counter[Row]:
    return Counter((row["id"], row["seen"], row["clicked"]) for row in flow.arrow("v").to_pylist() if row["id"] >= 0)


def messages(client: Client) -> Counter[Row]:
    """What a reader has who takes each message of an epoch once."""
    told = {(record["headers"]["rejoinder.epoch"], record["value"]) for record in client.read("joined")}
    result: Counter[Row] = Counter()
    for row in (json.loads(value) for _, value in told):
        result[row["id"], row["seen"], row["clicked"]] += row["_diff"]
    return Counter({row: count for row, count in result.items() if row[0] >= 0})


@contextmanager
def following(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`rejoinder run --follow` in a process of its own, killed in the end; what it says is in a log."""
    command = [sys.executable, "-m", "rejoinder.cli.main", "run", "flow.sql", "--follow", "--parallelism", "2"]
    environment = {**os.environ, "SPARK_CONF_DIR": str(folder)}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def epoch(folder: Path) -> int:
    manifest = latest(open_store(str(folder / "state/flow")))
    return -1 if manifest is None else manifest.epoch


def wait_until(condition: Callable[[], bool], is_alive: Callable[[], bool], log: Path) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert is_alive() and time.monotonic() < end, log.read_text()[-3000:]
        time.sleep(0.1)


@DEEP
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_broker_and_driver(spark: SparkSession, tmp_path: Path, broker: Broker, client: Client) -> None:
    topics = ("impressions", "clicks")
    for topic in (*topics, "joined"):
        client.create(topic, 3)
    text = FLOW.format(address=broker.address, delay=SPAN, within=WITHIN, patience=1000 * SECONDS)
    (tmp_path / "flow.sql").write_text(text)
    (tmp_path / "spark-defaults.conf").write_text(f"{SETTING}{KAFKA.name} {PACKAGES}\n")
    chance = random.Random(one_seed())
    data = {topic: [batch(chance, number) for number in range(BATCHES)] for topic in topics}

    def send(number: int) -> None:
        """A batch to the partitions 0 and 1; nothing is ever in partition 2."""
        for topic in topics:
            rows = data[topic][number] if number < BATCHES else [(-1, 1000), (-1, 1000)]
            values = [json.dumps({"id": key, "ts": at}) for key, at in rows]
            client.send(topic, [Record(value, partition=at % 2) for at, value in enumerate(values)])

    send(0)
    with following(tmp_path) as driver:
        wait_until(lambda: epoch(tmp_path) >= 0, lambda: driver.poll() is None, tmp_path / "log")
        send(1)
        driver.send_signal(signal.SIGKILL)
    before = epoch(tmp_path)
    flow = rj.Flow(tmp_path / "state/flow", spark=spark, parallelism=3)
    flow.start()
    wait_until(lambda: flow.epoch > before, lambda: flow.is_running, broker.log)
    broker.kill()
    time.sleep(1)
    broker.start()
    for number in range(2, BATCHES + 1):
        send(number)
    expected = joined(*(list(itertools.chain(*data[topic])) for topic in topics))
    wait_until(lambda: view(flow) == expected, lambda: flow.is_running, broker.log)
    flow.stop()
    assert view(flow) == expected == messages(client)
    assert None in {clicked for _, _, clicked in expected}, "some have no match"

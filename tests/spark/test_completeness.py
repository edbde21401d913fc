"""Complete or refused, on Spark: files are read again up to the committed position; DataFrames are not."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rejoinder as rj
from rejoinder.connectors.delta.spark import tables as delta_tables
from rejoinder.connectors.kafka.spark import topics
from rejoinder.connectors.spark.keyed_changes import by_key
from rejoinder.errors import Incomplete
from tests.deep import DEEP
from tests.spark.broker import Broker, Client, Record
from tests.spark.conftest import OpenFlow
from tests.spark.files import FORMATS, write_rows
from tests.spark.test_frame_sources import Fed

START = datetime(2026, 1, 1)
COLUMNS = "(k BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)"
PAIRS = (
    "CREATE VIEW pairs AS SELECT a.k, a.ts, b.ts AS t2 FROM s a JOIN s b "
    "ON a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 10 MINUTES"
)
DAILY = "SELECT TUMBLE(ts, INTERVAL 1 DAY).start AS day, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL 1 DAY)"


def rows(day: int) -> list[dict[str, Any]]:
    return [{"k": at % 5, "ts": START + timedelta(days=day, minutes=at)} for at in range(100)]


def counts(frame: Any) -> list[int]:
    return [row["n"] for row in sorted(frame.collect(), key=lambda row: row["day"])]


@pytest.mark.parametrize("format_", FORMATS)
def test_files_are_read_again(open_flow: OpenFlow, tmp_path: Path, format_: str) -> None:
    folder = tmp_path / "in with space"
    folder.mkdir()
    flow = open_flow()
    flow.sql(f"CREATE STREAM s {COLUMNS} USING {format_} OPTIONS (path '{folder}'); {PAIRS};")
    for day in range(3):
        write_rows(folder / f"{day}.{format_}", rows(day))
        flow.run()
    write_rows(folder / f"3.{format_}", rows(3))  # no epoch has read it yet
    assert counts(flow.sql(DAILY)) == [100, 100, 100]
    flow.sql(f"CREATE VIEW daily AS {DAILY}")
    assert counts(flow.table("daily")) == [100, 100, 100]
    again = open_flow()
    again.run()
    assert counts(again.table("daily")) == [100, 100, 100, 100], "no row is lost or doubled at the seam"
    (folder / f"1.{format_}").unlink()
    with pytest.raises(Incomplete, match=rf"1\.{format_}` no longer exists"):
        again.sql("SELECT TVR count(*) AS n FROM s")


def test_a_frame_is_refused_or_started_or_retained(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow()
    fed = Fed(flow.spark, tmp_path / "in", "k BIGINT, ts TIMESTAMP")
    kept = Fed(flow.spark, tmp_path / "kept", "k BIGINT, ts TIMESTAMP")
    flow.stream("s", fed.stream, event_time="ts", delay="1 minute")
    flow.stream("r", kept.stream, event_time="ts", delay="1 minute", retain="all")
    flow.sql(PAIRS)
    for day in range(2):
        fed.add(*(tuple(row.values()) for row in rows(day)))
        kept.add(*(tuple(row.values()) for row in rows(day)))
        flow.run()
    with pytest.raises(Incomplete, match="a DataFrame is not read again"):
        flow.view("daily", DAILY)
    flow.view("daily", DAILY, starting_at="now")
    flow.view("since", DAILY, starting_at=START + timedelta(days=1, minutes=95))
    flow.view("whole", DAILY.replace("FROM s", "FROM r"))
    fed.add((1, START + timedelta(days=2)))
    flow.run()
    assert counts(flow.table("daily")) == [1] and counts(flow.table("since")) == [5, 1]
    assert counts(flow.table("whole")) == [100, 100]


class _Settings(dict[str, str]):
    """Settings of a session, as a mapping that a test can change for a while."""

    def __init__(self, spark: Any) -> None:
        super().__init__()
        self.spark = spark

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(name, value)
        self.spark.conf.set(name, value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self.spark.conf.unset(name)


@pytest.mark.parametrize(
    "start",
    ["", *(pytest.param(start, marks=DEEP) for start in (", startingVersion '1'", ", startingTimestamp '{past}'"))],
)
def test_a_change_feed_is_read_again(
    open_flow: OpenFlow, tmp_path: Path, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed that began with the table is one version of it; one that began at a version is its changes since."""
    path, columns = str(tmp_path / "s"), "k bigint, ts timestamp"
    flow = open_flow()
    delta_tables.prepare(flow.spark)
    spark = flow.spark
    setting = "spark.databricks.delta.properties.defaults.enableChangeDataFeed"
    monkeypatch.setitem(_Settings(spark), setting, "true")

    def put(day: int) -> None:
        frame = spark.createDataFrame([tuple(row.values()) for row in rows(day)], columns)
        frame.coalesce(1).write.format("delta").mode("append").save(path)

    put(0)  # version 0
    put(1)
    options = f"path '{path}'{start.format(past='2020-01-01')}"
    flow.sql(f"CREATE CHANGELOG s {COLUMNS} USING delta OPTIONS ({options}); {PAIRS}")
    flow.run()
    put(2)
    gone = [(row["k"], row["ts"], 1, -1) for day in (1, 2) for row in rows(day) if row["k"] == 4]
    frame = spark.createDataFrame(gone, f"{columns}, _epoch bigint, _diff bigint")
    delta_tables.merge(by_key(frame, ["k", "ts"]), path, ["k", "ts"], "test", 1)
    flow.run()
    put(3)  # no epoch has read it yet
    expected = [80, 80] if "Version '1'" in start else [100, 80, 80]
    assert counts(flow.sql(DAILY)) == expected
    flow.sql("CREATE VIEW left_over AS SELECT k, ts FROM s WHERE ts >= TIMESTAMP '2026-01-02'")
    again = open_flow()
    again.run()
    assert again.table("left_over").count() == 260, "no row is lost or doubled at the seam"
    again.sql("DROP VIEW left_over")
    assert counts(again.sql(DAILY)) == [*expected, 100]
    for file in (*Path(path).glob("*.parquet"), Path(path) / "_delta_log" / f"{1:020d}.json"):
        file.unlink()  # as VACUUM and log retention do
    with pytest.raises(Incomplete, match=r"of the Delta table no longer exists|Delta no longer has its versions"):
        again.sql(DAILY)


def test_the_start_is_part_of_the_definition(open_flow: OpenFlow) -> None:
    flow: rj.Flow = open_flow()
    flow.sql("CREATE STREAM s (k BIGINT)")
    flow.view("v", "SELECT k FROM s", starting_at=0)
    assert flow.sql("SHOW VIEWS")[0]["starts_at"] == {}, "a complete source is complete"


def test_records_of_a_topic_are_read_again(
    open_flow: OpenFlow, broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("twice", 2)

    def send(day: int) -> None:
        found = [{**row, "ts": str(row["ts"])} for row in rows(day)]
        client.send("twice", [Record(json.dumps(row), None, at % 2) for at, row in enumerate(found)])

    flow = open_flow()
    options = f"bootstrap '{broker.address}', topic 'twice'"
    flow.sql(f"CREATE STREAM s {COLUMNS} USING kafka OPTIONS ({options}); {PAIRS};")
    for day in range(2):
        send(day)
        flow.run()
    send(2)  # no epoch has read these yet
    assert counts(flow.sql(DAILY)) == [100, 100]
    flow.sql(f"CREATE VIEW daily AS {DAILY}")
    assert counts(flow.table("daily")) == [100, 100]
    again = open_flow()
    again.run()
    assert counts(again.table("daily")) == [100, 100, 100], "no record is lost or doubled at the seam"
    place = {"bootstrap": broker.address, "topic": "twice"}
    assert topics.first_offsets(flow.spark, "a test", place, [0, 1]) == {0: 0, 1: 0}
    monkeypatch.setattr(topics, "first_offsets", lambda *asked: {0: 3, 1: 0})  # as if the broker had removed some
    with pytest.raises(Incomplete, match="begins at offset 3 of partition 0; older records were removed"):
        again.sql("CREATE VIEW more AS SELECT count(*) AS n FROM s")

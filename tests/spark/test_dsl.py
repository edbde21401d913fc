"""Streams, tables and windowed tables over a Flow: the same objects as over the Driver, and the same rows."""

from __future__ import annotations

import runpy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import rejoinder as rj
from rejoinder.errors import Unsupported
from rejoinder.formats.text.plain_rows import plain_rows
from rejoinder.testing import Driver
from tests.spark.conftest import OpenFlow
from tests.spark.rows import bag

START = datetime(2026, 1, 1)
VIEWS = ("near", "first", "either", "priced", "named", "daily", "weekly", "latest", "back")


def define(home: Any, using: str = "") -> None:
    """A view for every kind of cell. `using` says where the rows come from, if not from this test: {} is a name."""
    for name in ("clicks", "shows"):
        home.sql(f"CREATE STREAM {name} (ad STRING, n BIGINT, ts TIMESTAMP) {using.format(name)}")
    tables = {
        "ads": "ad STRING PRIMARY KEY, price BIGINT, owner STRING",
        "owners": "id STRING PRIMARY KEY, city STRING",
    }
    for name, table in tables.items():
        home.sql(f"CREATE TABLE {name} ({table}) {using.format(name)}")
    clicks, shows = (rj.Stream.of(home, name, time="ts") for name in ("clicks", "shows"))
    ads, owners = rj.Table.of(home, "ads"), rj.Table.of(home, "owners")
    clicks.join(shows, on="ad", within="10 minutes").to("near")
    clicks.left_join(shows, on="ad", within=("10 minutes", "0 minutes")).to("first")
    clicks.outer_join(shows, on="ad", within="10 minutes").to("either")
    clicks.left_join(ads).to("priced")
    ads.left_join(owners, on={"upper(owner)": "id"}).to("named")
    clicked, shown = (each.group_by("ad").windowed(rj.tumble("1 day")).count() for each in (clicks, shows))
    columns = ("ad", "CAST(window.start AS STRING) AS day", "count", "shows_count")
    clicked.outer_join(shown).to_stream(*columns).to("daily")
    ads.left_join(clicked, window="TIMESTAMP'2026-01-01 00:00:00'", select=["ads.ad", "count"]).to("weekly")
    clicks.to_table("ad", order="ts").left_join(ads, select=["clicks.ad", "n", "price"]).to("latest")
    ads.to_stream(deletes="gone").to_table("ad", deleted="gone").select("ad", "price").to("back")


def rounds() -> list[tuple[dict[str, list[dict[str, Any]]], dict[str, list[dict[str, Any]]]]]:
    """What comes and what goes, epoch by epoch."""

    def at(ad: str, n: int, minutes: float) -> dict[str, Any]:
        return {"ad": ad, "n": n, "ts": START + timedelta(minutes=minutes)}

    return [
        (
            {
                "clicks": [at("a", 1, 0), at("b", 2, 1)],
                "shows": [at("a", 3, 5)],
                "ads": [{"ad": "a", "price": 7, "owner": "x"}, {"ad": "b", "price": 8, "owner": "y"}],
                "owners": [{"id": "X", "city": "Rome"}],
            },
            {},
        ),
        (
            {
                "clicks": [at("a", 4, 6), at("b", 5, 3000)],
                "shows": [at("b", 6, 2), at("c", 7, 3)],
                "ads": [{"ad": "a", "price": 9, "owner": "y"}],
                "owners": [{"id": "Y", "city": "Oslo"}],
            },
            {"ads": [{"ad": "b"}]},
        ),
        ({"clicks": [at("b", 8, 2), at("c", 9, 4)], "shows": [at("a", 1, 7)]}, {"owners": [{"id": "X"}]}),
    ]


def test_every_cell_on_spark_is_as_on_the_driver(open_flow: OpenFlow) -> None:
    driver, flow = Driver(parallelism=2), open_flow()
    define(driver)
    define(flow)
    for number, (come, gone) in enumerate(rounds()):
        for name, rows in come.items():
            driver.insert(name, *rows)
            flow.insert(name, rows)
        for name, rows in gone.items():
            driver.delete(name, *rows)
            flow.delete(name, rows)
        driver.step()
        flow.run()
        if number == 1:
            flow = open_flow()
    for view in VIEWS:
        wanted = driver.table(view)
        assert wanted and bag(plain_rows(flow.arrow(view))) == bag(wanted), view
    relation, same = (rj.Relation.of(home, VIEWS[0]) for home in (flow, driver))
    assert relation.table().count() == len(same.table()) and "_undo" in relation.stream().columns
    assert str(relation.tvr()).count("\nfrom ") == str(same.tvr()).count("\nfrom ")


def test_declared_frames_are_streams_and_tables(open_flow: OpenFlow, spark: SparkSession) -> None:
    flow = open_flow()
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).option("numPartitions", 1).load()
    timed = ticks.select(F.col("value"), F.col("timestamp").alias("ts"))
    stream = flow.stream("ticks", timed, event_time="ts", delay="0 seconds")
    table = flow.keyed("named", ticks.select((F.col("value") % 3).alias("id"), "value"), key="id")
    assert type(stream) is rj.Stream and stream.time == "ts"
    assert type(table) is rj.Table and table.key == ("id",)
    joined = stream.select("value % 3 AS id", "value AS v").left_join(table)
    flow.view("v", joined)
    assert flow.relation("v").name == "v" and "as it is at arrival" in flow.explain("v")


def test_the_example_of_orders_with_rates(open_flow: OpenFlow, capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "orders_with_rates.py"))
    example["main"](open_flow())
    assert capsys.readouterr().out == (
        "booked [(1, 'GBP', 125.0), (2, 'USD', 20.0)]\nworth_now [('ada', 150.0), ('bea', 20.0)]\n"
    )


def test_a_windowed_table_is_no_view(flow: rj.Flow) -> None:
    flow.sql("CREATE STREAM s (id BIGINT, ts TIMESTAMP)")
    daily = rj.Stream.of(flow, "s", time="ts").group_by("id").windowed(rj.tumble("1 day")).count()
    with pytest.raises(Unsupported, match="`v` would be a view of a windowed table"):
        flow.view("v", daily)
    flow.view("v", daily.to_stream("id", "count"))
    assert rj.Stream.of(flow, "v").columns == ["id", "count"]

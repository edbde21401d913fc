"""Streaming DataFrames as sources: all types, all kinds, any of Spark's own sources behind them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import rejoinder as rj
from rejoinder.errors import DefinitionConflict, InvalidSql, UnknownName, Unsupported
from tests.spark.conftest import OpenFlow
from tests.spark.files import write_rows
from tests.spark.rows import bag, view

ALL_TYPES = """
    id BIGINT, bo BOOLEAN, ti TINYINT, sm SMALLINT, i INT, f FLOAT, d DOUBLE, de DECIMAL(20, 4), wide DECIMAL(38, 10),
    s STRING, b BINARY, da DATE, ts TIMESTAMP, nt TIMESTAMP_NTZ, st STRUCT<x: INT, y: ARRAY<STRING>>,
    ar ARRAY<STRUCT<k: STRING, t: TIMESTAMP>>, ma MAP<STRING, DECIMAL(5, 2)>
"""


class Fed:
    """A DataFrame that streams what is written to a folder of Parquet files by Spark itself."""

    def __init__(self, spark: SparkSession, folder: Path, schema: str) -> None:
        self.spark, self.folder, self.schema = spark, str(folder), schema
        folder.mkdir()

    def add(self, *rows: tuple[Any, ...]) -> None:
        self.spark.createDataFrame(list(rows), self.schema).coalesce(1).write.mode("append").parquet(self.folder)

    @property
    def stream(self) -> DataFrame:
        return self.spark.readStream.schema(self.schema).parquet(self.folder)

    @property
    def batch(self) -> DataFrame:
        return self.spark.read.schema(self.schema).parquet(self.folder)


def row(number: int) -> tuple[Any, ...]:
    """A row with a value in every column, and one with NULL in all of them."""
    if number == 0:
        return (0,) + (None,) * 16
    when = datetime(2024, 2, 29, 12, 30, 1, number)
    return (
        number, number % 2 == 0, -number, number, -(2**31), float("nan") if number == 1 else 0.1, -0.0,
        Decimal("-1234567890123456.7891"), Decimal("1234567890123456789012345678.0123456789"),
        f"é\x00{number}", b"\x00\xff", date(1582, 10, 4), when, when, Row(x=number, y=["a", None]),
        [Row(k="k", t=when), None], {"a": Decimal("1.50"), "b": None},
    )  # fmt: skip


def test_every_type_travels_through_a_join(spark: SparkSession, flow: rj.Flow, tmp_path: Path) -> None:
    left = Fed(spark, tmp_path / "left", ALL_TYPES)
    right = Fed(spark, tmp_path / "right", "id BIGINT, note STRING")
    flow.stream("l", left.stream)
    flow.stream("r", right.stream)
    flow.sql("CREATE VIEW v AS SELECT l.*, note FROM l JOIN r ON l.id = r.id")
    left.add(row(0), row(1), row(2))
    right.add((0, "zero"), (1, "one"), (2, None), (2, "two"))
    flow.run()
    expected = left.batch.join(right.batch, "id")
    table = flow.table("v")
    assert table.schema.simpleString() == expected.schema.simpleString()
    assert bag(table) == bag(expected)
    assert bag(flow.sql("SELECT * FROM v")) == bag(expected)


@pytest.mark.parametrize("key", ["bo", "ti", "sm", "i", "f", "d", "de", "wide", "s", "b", "da", "ts", "nt"])
def test_every_type_that_can_be_a_key(spark: SparkSession, keyed_flow: rj.Flow, key: str) -> None:
    flow = keyed_flow
    expected = spark.sql(f"SELECT x.id, y.id AS other FROM batch x JOIN batch y ON x.{key} = y.{key}")
    flow.sql(f"CREATE VIEW by_{key} AS SELECT x.id, y.id AS other FROM s x JOIN s y ON x.{key} = y.{key}")
    assert view(flow, f"by_{key}") == bag(expected)
    flow.sql(f"DROP VIEW by_{key}")


@pytest.fixture(scope="module")
def keyed_flow(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rj.Flow]:
    """A flow with one stream of all types, read."""
    folder = tmp_path_factory.mktemp("keyed")
    fed = Fed(spark, folder / "in", ALL_TYPES)
    fed.add(row(0), row(0), row(1), row(1), row(2), row(3))
    fed.batch.createOrReplaceTempView("batch")
    flow = rj.Flow(folder / "state", spark=spark, parallelism=2)
    flow.stream("s", fed.stream)
    flow.sql("CREATE VIEW every AS SELECT id FROM s")
    flow.run()
    yield flow
    spark.catalog.dropTempView("batch")


def test_types_that_are_not_supported_are_refused_by_name(spark: SparkSession, flow: rj.Flow) -> None:
    ticks = spark.readStream.format("rate").load()
    for column, named in (
        ("INTERVAL '1' DAY", "interval"),
        ("INTERVAL '1' MONTH", "interval"),
        ("parse_json('1')", "variant"),
        ("NULL", "void"),
        ("'a' COLLATE UTF8_LCASE", "collate"),
        ("array(INTERVAL '1' DAY)", "interval"),
    ):
        with pytest.raises(Unsupported, match=f"(?i){named}"):
            flow.stream("odd", ticks.select(F.expr(column).alias("c")))
    assert flow.engine.version.catalog.find("odd") is None


def test_keyed_frame(spark: SparkSession, flow: rj.Flow, tmp_path: Path) -> None:
    fed = Fed(spark, tmp_path / "in", "id BIGINT, at TIMESTAMP, name STRING, gone STRING")
    flow.keyed("t", fed.stream, key="id", order="at", op="gone")
    flow.sql("CREATE VIEW v AS SELECT id, name FROM t")
    early, late = datetime(2024, 1, 1), datetime(2024, 1, 2)
    fed.add((1, late, "late", "u"), (1, early, "early", "u"), (2, early, "two", "c"))
    flow.run()
    assert view(flow, "v") == bag([(1, "late"), (2, "two")])
    fed.add((1, early, "early", "d"), (2, late, None, "d"), (3, early, "three", "c"))
    flow.run()
    assert view(flow, "v") == bag([(1, "late"), (3, "three")])


def test_last_row_of_a_frame_wins(spark: SparkSession, flow: rj.Flow, tmp_path: Path) -> None:
    fed = Fed(spark, tmp_path / "in", "id BIGINT, name STRING")
    flow.keyed("t", fed.stream, key=["id"])
    flow.sql("CREATE VIEW v AS SELECT id, name FROM t")
    fed.add(*[(i % 10, f"{i}") for i in range(1000)])
    flow.run()
    assert view(flow, "v") == bag([(i, f"{990 + i}") for i in range(10)])


def test_changelog_frames(spark: SparkSession, flow: rj.Flow, tmp_path: Path) -> None:
    by_op = Fed(spark, tmp_path / "op", "id BIGINT, what STRING")
    by_diff = Fed(spark, tmp_path / "diff", "id BIGINT, n INT")
    flow.changelog("a", by_op.stream, op="what")
    flow.changelog("b", by_diff.stream, diff="n")
    flow.sql("CREATE VIEW v AS SELECT id FROM a UNION ALL SELECT id FROM b")
    by_op.add((1, "+"), (1, "+"), (2, "+"))
    by_diff.add((1, 2), (3, 1))
    flow.run()
    by_op.add((1, "-"), (2, "-"))
    by_diff.add((1, -1), (4, 1), (4, -1))
    flow.run()
    assert view(flow, "v") == bag([(1,), (1,), (3,)])


def test_rate_and_memory_streams(spark: SparkSession, flow: rj.Flow) -> None:
    batches = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    flow.stream("ticks", batches.select("value", (F.col("value") % 2).alias("odd")))
    flow.sql("CREATE TABLE names (odd BIGINT, name STRING, PRIMARY KEY (odd))")
    flow.sql("CREATE VIEW v AS SELECT value, name FROM ticks JOIN names USING (odd)")
    flow.insert("names", [{"odd": 0, "name": "even"}, {"odd": 1, "name": "odd"}])
    flow.run()
    flow.run()
    assert flow.epoch == 1
    assert view(flow, "v") == bag([(i, "odd" if i % 2 else "even") for i in range(10)])


def test_frames_with_several_sources(spark: SparkSession, open_flow: OpenFlow, tmp_path: Path) -> None:
    one, two = (Fed(spark, tmp_path / name, "id BIGINT") for name in ("one", "two"))
    flow = open_flow()

    def declare(flow: rj.Flow) -> None:
        stream = one.stream
        flow.stream("twice", stream.union(stream))
        flow.stream("both", one.stream.union(two.stream))
        flow.stream("again", two.stream.where("id > 1"))

    declare(flow)
    flow.sql("CREATE VIEW v AS SELECT 'twice' AS w, id FROM twice UNION ALL SELECT 'both', id FROM both")
    one.add((1,), (2,))
    flow.run()
    flow.sql("CREATE CHANGELOG m (id BIGINT)")
    flow.sql("CREATE VIEW first AS SELECT id FROM m")
    flow.sql("CREATE VIEW u AS SELECT id FROM again")
    two.add((3,))
    flow.insert("m", [{"id": 7}])
    flow.run()
    flow = open_flow()
    declare(flow)
    one.add((4,))
    two.add((1,), (5,))
    flow.run()
    assert view(flow, "v") == bag(
        [("twice", i) for i in (1, 1, 2, 2, 4, 4)] + [("both", i) for i in (1, 2, 3, 4, 1, 5)]
    )
    assert view(flow, "u") == bag([(3,), (5,)]) and view(flow, "first") == bag([(7,)])


def test_two_sources_on_one_stream_are_refused(spark: SparkSession, flow: rj.Flow, tmp_path: Path) -> None:
    stream = Fed(spark, tmp_path / "in", "id BIGINT").stream
    flow.stream("a", stream)
    flow.stream("b", stream.where("id > 1"))
    flow.sql("CREATE VIEW v AS SELECT a.id FROM a JOIN b ON a.id = b.id")
    with pytest.raises(Unsupported, match="`a` and `b` read the same streaming DataFrame"):
        flow.run()


def test_frame_with_state_of_its_own(spark: SparkSession, open_flow: OpenFlow, tmp_path: Path) -> None:
    fed = Fed(spark, tmp_path / "in", "id BIGINT, at TIMESTAMP")
    other = tmp_path / "other"
    write_rows(other / "1.parquet", [{"x": 1}])

    def declare(flow: rj.Flow) -> rj.Flow:
        flow.stream("s", fed.stream.withWatermark("at", "1 day").dropDuplicates(["id", "at"]))
        return flow

    flow = declare(open_flow())
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    when = datetime(2024, 1, 1)
    fed.add((1, when), (1, when), (2, when))
    flow.run()
    flow = declare(open_flow())
    flow.sql(f"CREATE STREAM o (x BIGINT) USING parquet OPTIONS (path '{other}')")
    flow.sql("CREATE VIEW w AS SELECT x FROM o")
    fed.add((1, when), (3, when))
    flow.run()
    assert view(flow, "v") == bag([(1,), (2,), (3,)]) and view(flow, "w") == bag([(1,)])


def test_frames_are_declared_again_after_a_restart(spark: SparkSession, open_flow: OpenFlow, tmp_path: Path) -> None:
    fed = Fed(spark, tmp_path / "in", "id BIGINT, name STRING")
    flow = open_flow()
    flow.stream("s", fed.stream)
    flow.sql("CREATE VIEW v AS SELECT id FROM s")
    fed.add((1, "a"))
    flow.run()
    flow = open_flow()
    fed.add((2, "b"))
    with pytest.raises(UnknownName, match=r"`s` is not declared in this process[\s\S]*Hint: call flow\.stream"):
        flow.run()
    assert view(flow, "v") == bag([(1,)])
    with pytest.raises(DefinitionConflict, match="other columns"):
        flow.stream("s", fed.stream.select("id"))
    flow.stream("S", fed.stream)
    flow.run()
    assert view(flow, "v") == bag([(1,), (2,)])


def test_a_batch_frame_is_refused(spark: SparkSession, flow: rj.Flow) -> None:
    with pytest.raises(InvalidSql, match="is not a stream"):
        flow.stream("s", spark.range(3))

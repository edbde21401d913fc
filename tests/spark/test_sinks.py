"""Sinks that need Spark: a database, Delta tables, files written by executors; and what they say when it goes wrong."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import rejoinder as rj
import rejoinder.connectors.delivery as delivery_module
from rejoinder.connectors.spark.keyed_changes import by_key
from rejoinder.errors import MissingInput, SinkFailed
from rejoinder.state.sink_progress import Delivered
from tests.spark.postgres import Postgres

SECRET = "geheim-4711"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A database that runs; it is taken away in the end."""
    server = Postgres(SECRET)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="module", autouse=True)
def quick_delta(spark: SparkSession) -> None:
    """Tests read small tables; Delta would read their logs with fifty tasks."""
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "1")


@pytest.fixture
def shop(flow: rj.Flow, monkeypatch: pytest.MonkeyPatch) -> rj.Flow:
    """A flow with a table and a view of its rows."""
    monkeypatch.setenv("RJ_TEST_PASSWORD", SECRET)
    flow.sql(
        """CREATE TABLE a (id BIGINT, name STRING, amount DECIMAL(10, 2), at TIMESTAMP, PRIMARY KEY (id));
           CREATE VIEW v AS SELECT id, name, amount, at FROM a WHERE amount >= 0"""
    )
    return flow


def row(number: int, name: str, amount: float = 1.5) -> dict[str, Any]:
    return {"id": number, "name": name, "amount": amount, "at": "2026-01-01T10:00:00"}


def put(flow: rj.Flow, *rows: dict[str, Any]) -> None:
    """Put rows into the table and run the epoch."""
    from datetime import datetime, timezone
    from decimal import Decimal

    kept = [
        {**r, "amount": Decimal(str(r["amount"])), "at": datetime.fromisoformat(r["at"]).replace(tzinfo=timezone.utc)}
        for r in rows
    ]
    flow.insert("a", kept)
    flow.run()


def options(postgres: Postgres, table: str, **more: str) -> str:
    given = {"url": postgres.url, "dbtable": table, "user": "ada", "password": "env:RJ_TEST_PASSWORD", **more}
    return ", ".join(f"{name} '{value}'" for name, value in given.items())


def test_a_database_table_with_a_row_per_key(shop: rj.Flow, postgres: Postgres, state: str) -> None:
    """Inserts, updates and deletes by key and changes appended, with the epoch in the same transaction."""
    postgres.sql(
        """CREATE SCHEMA s; CREATE TABLE s.people (ID bigint PRIMARY KEY, Name text, amount numeric, at timestamptz);
           CREATE TABLE changes (id bigint, name text, amount numeric, at timestamp, _epoch bigint, _diff int)"""
    )
    put(shop, row(1, "Ada"), row(2, "Bob"))
    shop.sql(f"CREATE SINK people FROM v USING jdbc OPTIONS ({options(postgres, 's.people', mode='upsert', key='id')})")
    shop.sql(f"CREATE SINK log FROM v USING jdbc OPTIONS ({options(postgres, 'changes', **{'from': 'now'})})")
    put(shop, row(1, "Ada Allen"), row(2, "Bob", -1), row(3, "O'Hara", 12.25))
    people = "SELECT id, name, amount, extract(epoch FROM at)::bigint FROM s.people ORDER BY id"
    assert postgres.sql(people) == [["1", "Ada Allen", "1.50", "1767261600"], ["3", "O'Hara", "12.25", "1767261600"]]
    assert postgres.sql("SELECT id, name, _epoch, _diff FROM changes ORDER BY id, _diff") == [
        ["1", "Ada", "1", "-1"], ["1", "Ada Allen", "1", "1"], ["2", "Bob", "1", "-1"], ["3", "O'Hara", "1", "1"],
    ]  # fmt: skip
    assert postgres.sql("SELECT epoch FROM s.rejoinder_epochs") == [["1"]]
    assert postgres.sql("SELECT tablename FROM pg_tables WHERE tablename LIKE 'rejoinder_%' ORDER BY 1") == [
        ["rejoinder_epochs"], ["rejoinder_epochs"],
    ]  # fmt: skip

    # Half way through: the database refuses a row of the transaction.
    postgres.sql("ALTER TABLE s.people ADD CONSTRAINT short CHECK (length(name) < 12)")
    with pytest.raises(SinkFailed, match="sink `people` failed at epoch 2") as failure:
        put(shop, row(1, "Ada"), row(4, "somebody with a long name"))
    assert "a row violates a constraint of the table (SQLSTATE 23514)" in str(failure.value)
    assert 'violates check constraint "short"' in str(failure.value.values)
    assert "somebody" not in str(failure.value) and SECRET not in str(failure.value)
    assert shop.epoch == 2 and {r.name for r in shop.table("v").collect()} >= {"Ada", "somebody with a long name"}
    assert postgres.sql("SELECT name FROM s.people WHERE id = 1") == [["Ada Allen"]], "all of an epoch, or nothing"
    postgres.sql("ALTER TABLE s.people DROP CONSTRAINT short")
    shop.run()
    assert postgres.sql("SELECT id, name FROM s.people ORDER BY id") == [
        ["1", "Ada"], ["3", "O'Hara"], ["4", "somebody with a long name"],
    ]  # fmt: skip
    assert postgres.sql("SELECT count(*) FROM changes WHERE _epoch = 2") == [["3"]], "and the sinks after it"

    # Somebody else has changed the table.
    postgres.sql("DELETE FROM s.people WHERE id = 3")
    with pytest.raises(SinkFailed, match="does not contain what sink `people` has written") as failure:
        put(shop, row(3, "Scarlett"), row(1, "Ada B."))
    assert "of 2 row(s) to replace or delete 1 exist" in str(failure.value)
    assert postgres.sql("SELECT name FROM s.people WHERE id = 1") == [["Ada"]]
    postgres.sql("INSERT INTO s.people VALUES (3, 'O''Hara', 12.25, now())")
    shop.run()
    assert postgres.sql("SELECT name FROM s.people ORDER BY id") == [
        ["Ada B."], ["Scarlett"], ["somebody with a long name"],
    ]  # fmt: skip

    # Nothing of this tells the password, and it is nowhere on disk.
    assert shop.sinks()[0]["options"].endswith("password 'env:RJ_TEST_PASSWORD', mode 'upsert', key 'id'")
    assert not any(SECRET in path.read_text(errors="ignore") for path in Path(state).rglob("*") if path.is_file())

    # The server is gone, and comes back.
    postgres.stop()
    began = time.monotonic()
    with pytest.raises(SinkFailed, match="cannot be reached") as failure:
        put(shop, row(1, "Ada"))
    assert f"127.0.0.1:{postgres.port}" in str(failure.value) and time.monotonic() - began < 30
    postgres.start()
    shop.run()
    assert postgres.sql("SELECT name FROM s.people WHERE id = 1") == [["Ada"]]


def test_databases_and_tables_that_are_not_there(shop: rj.Flow, postgres: Postgres) -> None:
    nowhere = options(postgres, "t").replace(f":{postgres.port}/", ":1/")
    began = time.monotonic()
    with pytest.raises(SinkFailed, match="the database of sink `s` cannot be reached") as failure:
        shop.sql(f"CREATE SINK s FROM v USING jdbc OPTIONS ({nowhere})")
    assert "127.0.0.1:1" in str(failure.value) and time.monotonic() - began < 20
    with pytest.raises(SinkFailed, match="table `missing` of sink `s` cannot be read") as failure:
        shop.sql(f"CREATE SINK s FROM v USING jdbc OPTIONS ({options(postgres, 'missing')})")
    assert 'relation "missing" does not exist' in str(failure.value) and "id bigint" in str(failure.value.hint)
    postgres.sql("CREATE TABLE narrow (id bigint)")
    with pytest.raises(SinkFailed, match="has no column `name`"):
        shop.sql(f"CREATE SINK s FROM v USING jdbc OPTIONS ({options(postgres, 'narrow')})")
    with pytest.raises(SinkFailed, match="cannot be reached") as failure:
        shop.sql(f"CREATE SINK s FROM v USING jdbc OPTIONS ({options(postgres, 'narrow').replace('ada', 'bob')})")
    assert "password authentication failed" in str(failure.value) and SECRET not in str(failure.value)
    assert shop.sinks() == []


def test_delta_tables(shop: rj.Flow, spark: SparkSession, tmp_path: Path) -> None:
    """Changes appended and a row per key; an epoch that the table has is passed over."""
    log, people = str(tmp_path / "log"), str(tmp_path / "people")
    put(shop, row(1, "Ada"), row(2, "Bob"))
    shop.sink("v", "delta", name="log", path=log, from_="now")
    shop.sink("v", "delta", name="people", path=people, mode="upsert", key="id")
    put(shop, row(1, "Ada Allen"), row(2, "Bob", -1), row(3, "Cy"))

    def check() -> None:
        changes = spark.read.format("delta").load(log).collect()
        assert sorted((each.id, each.name, each["_epoch"], each["_diff"]) for each in changes) == [
            (1, "Ada", 1, -1), (1, "Ada Allen", 1, 1), (2, "Bob", 1, -1), (3, "Cy", 1, 1),
        ]  # fmt: skip
        rows = spark.read.format("delta").load(people).collect()
        assert sorted((each.id, each.name) for each in rows) == [(1, "Ada Allen"), (3, "Cy")]

    check()
    again = rj.Flow(shop.engine.store.path, spark=spark, parallelism=2)
    again.engine.version = replace(again.engine.version, delivered={})
    again.run()
    assert [each["delivered"] for each in again.sinks()] == [1, 1], "Delta says how far it is"
    delivered = {identity: Delivered(0, 0) for identity in again.engine.version.delivered}
    again.engine.version = replace(again.engine.version, delivered=delivered)
    again._outbox.deliver()
    check()
    shutil.rmtree(people)
    with pytest.raises(SinkFailed, match="epoch 1 was delivered to sink `people`, which has no epoch now"):
        put(again, row(4, "Dee"))
    assert not Path(people).exists(), "a table that is lost while the flow runs is not made anew"


def test_a_change_feed_as_source(flow: rj.Flow, spark: SparkSession, tmp_path: Path) -> None:
    """Another flow's sink keeps a table; its change feed gives the same view again."""
    from rejoinder.connectors.delta.spark import tables as delta_tables

    delta_tables.prepare(spark)
    path = str(tmp_path / "people")
    rows = spark.createDataFrame([(1, "Ada"), (2, "Bob")], "id bigint, name string")
    rows.write.format("delta").save(path)
    flow.sql(f"CREATE CHANGELOG a (id BIGINT, name STRING) USING delta OPTIONS (path '{path}')")
    flow.sql("CREATE VIEW v AS SELECT id, name FROM a")
    with pytest.raises(MissingInput, match="has no change feed"):
        flow.run()
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    flow.run()
    assert sorted(tuple(row) for row in flow.table("v").collect()) == [(1, "Ada"), (2, "Bob")]
    changed = [(1, "Ada", 1, -1), (1, "Ada Allen", 1, 1), (2, "Bob", 1, -1), (3, "Cy", 1, 1)]
    frame = spark.createDataFrame(changed, "id bigint, name string, _epoch bigint, _diff bigint")
    delta_tables.merge(by_key(frame, ["id"]), path, ["id"], "test", 1)
    flow.run()
    assert sorted(tuple(row) for row in flow.table("v").collect()) == [(1, "Ada Allen"), (3, "Cy")]
    assert flow.progress[-1]["rows_in"] == {"a": 4}, "changes only"


def test_a_key_that_is_none(shop: rj.Flow, tmp_path: Path) -> None:
    shop.sql("CREATE VIEW twice AS SELECT id % 1 AS id, name FROM a")
    put(shop, row(1, "Ada"), row(2, "Bob"))
    shop.sink("twice", "delta", name="double", path=tmp_path / "double", mode="upsert", key="id")
    with pytest.raises(SinkFailed, match="`twice` has 2 rows for one key of sink `double`"):
        shop.run()


def test_a_key_whose_rows_come_in_two_epochs(shop: rj.Flow, spark: SparkSession, tmp_path: Path) -> None:
    """The second row of a key is not taken for the first one, nor is one that somebody else has removed."""
    shop.sql("CREATE VIEW twice AS SELECT id % 1 AS id, name FROM a")
    shop.sink("twice", "delta", name="double", path=tmp_path / "double", mode="upsert", key="id")
    put(shop, row(1, "Ada"))
    with pytest.raises(SinkFailed, match="does not contain what sink `double` has written") as failure:
        put(shop, row(2, "Bob"))
    assert 'the row of key {"id":0} exists already' in str(failure.value.values)
    assert [tuple(each) for each in spark.read.format("delta").load(str(tmp_path / "double")).collect()] == [(0, "Ada")]


def test_null_in_the_key_of_a_database_table(shop: rj.Flow, postgres: Postgres) -> None:
    """NULL is a group like any other."""
    postgres.sql("CREATE TABLE groups (name text, n bigint)")
    shop.sql("CREATE VIEW counted AS SELECT name, COUNT(*) AS n FROM a GROUP BY name")
    given = options(postgres, "groups", mode="upsert", key="name")
    shop.sql(f"CREATE SINK counts FROM counted USING jdbc OPTIONS ({given})")
    put(shop, {**row(1, ""), "name": None})
    put(shop, {**row(2, ""), "name": None})
    assert postgres.sql("SELECT name IS NULL, n FROM groups") == [["t", "2"]]


def test_executors_write_what_is_more_than_a_part(
    flow: rj.Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "PART_ROWS", 100)
    flow.sql("CREATE STREAM a (id BIGINT); CREATE VIEW v AS SELECT id FROM a")
    counted: list[tuple[int, int, int]] = []

    def count(epoch: int, changes: DataFrame) -> None:
        counted.append((epoch, changes.count(), changes.rdd.getNumPartitions()))

    flow.sink("v", "parquet", path=tmp_path / "out")
    flow.foreach_epoch("v", count)
    flow.insert("a", [{"id": i} for i in range(450)])
    flow.run()
    files = sorted((tmp_path / "out").glob("*.parquet"))
    ids = [each for file in files for each in pq.read_table(file).column("id").to_pylist()]
    assert len(files) == 5 and sorted(ids) == list(range(450))
    assert counted == [(0, 450, 5)]

"""Reading: tables now and then, changes as a stream that resumes, TVR; all views of an epoch belong together."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import rejoinder as rj
from rejoinder.errors import NotCommitted, UnknownName
from tests.spark.conftest import OpenFlow
from tests.spark.rows import Bag, bag, summed, view, wait_until


def fill(flow: rj.Flow) -> None:
    """Two joined sources, and a view on the view."""
    flow.sql("CREATE CHANGELOG a (id BIGINT, x INT); CREATE TABLE b (id BIGINT, y STRING, PRIMARY KEY (id))")
    flow.sql("CREATE VIEW v AS SELECT a.id, x, y FROM a JOIN b ON a.id = b.id")
    flow.sql("CREATE VIEW w AS SELECT DISTINCT y FROM v WHERE x > 0")


def epoch(flow: rj.Flow, number: int) -> None:
    """One more epoch: rows come, change, and go."""
    flow.insert("a", [{"id": number % 4, "x": number}, {"id": 1, "x": 7}])
    if number:
        flow.delete("a", [{"id": (number - 1) % 4, "x": number - 1}])
    flow.insert("b", [{"id": number % 4, "y": f"y{number}"}, {"id": 1, "y": f"one{number // 2}"}])
    flow.run()


def test_table_as_of_an_epoch_and_a_time(open_flow: OpenFlow) -> None:
    flow = open_flow()
    fill(flow)
    seen: list[Bag] = []
    moments: list[datetime] = []
    before = datetime.now(timezone.utc)
    for number in range(4):
        time.sleep(0.01)
        epoch(flow, number)
        moments.append(datetime.now(timezone.utc))
        seen.append(view(flow, "v"))
    assert len({repr(sorted(rows.items())) for rows in seen}) == 4
    for number, rows in enumerate(seen):
        assert bag(flow.table("v", as_of=number)) == rows == view(flow, "v", as_of=number)
        assert bag(flow.table("v", as_of=moments[number])) == rows
        assert bag(flow.table("v", as_of=moments[number].replace(tzinfo=None))) == rows
    assert bag(flow.table("V")) == seen[-1]
    assert bag(open_flow(parallelism=5).table("v", as_of=1)) == seen[1]
    with pytest.raises(NotCommitted, match="epoch 9 is not committed yet"):
        view(flow, "v", as_of=9)
    with pytest.raises(NotCommitted, match="by that time"):
        flow.table("v", as_of=before)
    with pytest.raises(UnknownName, match="there is no"):
        flow.table("u")


def test_a_table_stays_as_it_was_when_it_was_asked_for(flow: rj.Flow) -> None:
    """A DataFrame is lazy, and what it reads is an epoch: however late, however often, the same."""
    fill(flow)
    epoch(flow, 0)
    first, expected = flow.table("v"), view(flow, "v")
    joined = flow.table("v").join(flow.table("w"), "y")
    expected_joined = bag(joined)
    for number in range(1, 12):  # more than manifests are kept
        epoch(flow, number)
    assert bag(first) == expected and bag(joined) == expected_joined
    assert view(flow, "v") != expected


def test_history_ends_at_its_option(open_flow: OpenFlow) -> None:
    flow = open_flow(history=3)
    fill(flow)
    seen = []
    for number in range(8):
        epoch(flow, number)
        seen.append(view(flow, "v"))
    assert [view(flow, "v", as_of=number) for number in range(4, 8)] == seen[4:]
    with pytest.raises(NotCommitted, match=r"cannot be read as of epoch 3[\s\S]*starts at epoch 4"):
        view(flow, "v", as_of=3)
    with pytest.warns(UserWarning, match="the history of `v` starts at epoch 4"):
        assert summed(flow.sql("SELECT STREAM * FROM v").collect()) == seen[-1]


def write_changes(changes: DataFrame, folder: Path) -> None:
    """Append all changes that there are to Parquet files, from where the checkpoint says."""
    writer = changes.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start(f"{folder}/out").awaitTermination()


def test_changes_resume_from_their_checkpoint(spark: SparkSession, open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow()
    fill(flow)
    written = spark.read.schema(flow.changes("v").schema)
    for number in range(6):
        epoch(flow, number)
        if number in (0, 1, 4, 5):
            write_changes(flow.changes("v"), tmp_path)
            rows = written.parquet(f"{tmp_path}/out").collect()
            assert summed(rows) == view(flow, "v"), f"after epoch {number}"
        if number == 2:
            flow = open_flow(parallelism=3)
    rows = written.parquet(f"{tmp_path}/out").collect()
    assert Counter(rows) == Counter(flow.sql("SELECT STREAM * FROM v").collect()), "no change is lost or doubled"
    assert {row["_epoch"] for row in rows} == set(range(6))
    assert all(row["_emit_time"] is not None for row in rows)
    write_changes(flow.changes("v"), tmp_path)
    assert written.parquet(f"{tmp_path}/out").count() == len(rows)


def test_changes_of_a_running_flow(spark: SparkSession, open_flow: OpenFlow) -> None:
    flow = open_flow()
    fill(flow)
    flow.start()
    query = flow.changes("v").writeStream.format("memory").queryName("followed").start()
    for number in range(5):
        flow.insert("a", [{"id": number, "x": number}])
        flow.insert("b", [{"id": number, "y": "y"}])
        time.sleep(0.2)
    wait_until(lambda: view(flow, "v").total() == 5)
    flow.stop()
    query.processAllAvailable()
    assert summed(spark.table("followed").collect()) == view(flow, "v")
    query.stop()


def test_changes_that_are_no_longer_kept(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow(history=2)
    fill(flow)
    epoch(flow, 0)
    write_changes(flow.changes("v"), tmp_path)
    for number in range(1, 6):
        epoch(flow, number)
    with pytest.warns(UserWarning, match="the history of `v` starts at epoch 3"):
        changes = flow.changes("v")
    with pytest.raises(Exception, match="no longer kept") as failure:
        write_changes(changes, tmp_path)
    assert "history starts at epoch 3" in str(failure.value)


def test_tvr_is_the_sequence_of_tables(flow: rj.Flow) -> None:
    fill(flow)
    seen = [bag([])]
    for number in range(4):
        epoch(flow, number)
        seen.append(view(flow, "w"))
    shown = flow.tvr("w")
    different = [rows for at, rows in enumerate(seen) if at == 0 or rows != seen[at - 1]]
    assert [bag(snapshot.rows) for snapshot in shown] == different
    assert all(one.until == two.since for one, two in itertools.pairwise(shown))
    assert shown[-1].until is None


def test_views_read_at_one_epoch_belong_together(spark: SparkSession, open_flow: OpenFlow) -> None:
    """Whatever is committed in between: `w` at an epoch is what its query gives on `v` at that epoch."""
    flow = open_flow()
    fill(flow)
    flow.start()
    for number in range(6):
        flow.insert("a", [{"id": number % 3, "x": number}])
        flow.insert("b", [{"id": number % 3, "y": f"y{number}"}])
        wait_until(lambda number=number: flow.epoch >= number)  # type: ignore[misc]
        now = flow.epoch
        flow.insert("a", [{"id": 0, "x": -number}])
        flow.table("v", as_of=now).createOrReplaceTempView("v_now")
        expected = bag(spark.sql("SELECT DISTINCT y FROM v_now WHERE x > 0"))
        assert bag(flow.table("w", as_of=now)) == expected
    flow.stop()


def test_another_process_sees_what_is_committed(open_flow: OpenFlow) -> None:
    driver, onlooker = open_flow(), open_flow()
    fill(driver)
    onlooker = open_flow()
    epoch(driver, 0)
    assert bag(onlooker.table("v")) == view(driver, "v") == view(onlooker, "v") != Counter()


def test_the_changes_of_a_query_are_a_frame(flow: rj.Flow, tmp_path: Path) -> None:
    fill(flow)
    for number in range(3):
        epoch(flow, number)
    asked = flow.sql("SELECT STREAM v.* FROM v")
    assert asked.columns == flow.sql("SELECT STREAM * FROM v").columns
    assert bag(asked) == bag(flow.sql("SELECT STREAM * FROM v"))
    named = flow.sql("SELECT STREAM Sys.Undo AS gone, v.*, Sys.EmitTime FROM v")
    assert named.columns == ["gone", *flow.table("v").columns, "EmitTime"]
    assert dict(named.dtypes)["gone"] == "boolean" and dict(named.dtypes)["EmitTime"] == "timestamp"
    snapshots = flow.sql("SELECT TVR v.* FROM v")
    assert snapshots == flow.tvr("v") and str(snapshots) == str(flow.tvr("v"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1.json").write_text('{"id": 7}\n')
    flow.sql(
        f"CREATE STREAM f (id INT) USING json OPTIONS (path '{tmp_path}/files'); CREATE VIEW g AS SELECT id FROM f"
    )
    flow.run()
    with pytest.warns(UserWarning, match="the changes of `f` are not kept"):
        assert [row["id"] for row in flow.sql("SELECT STREAM id FROM f WHERE id > 0").collect()] == [7]

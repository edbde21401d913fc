"""Definitions that change while a flow goes on: what was read stays read, what is new is right from its first epoch."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import rejoinder as rj
from rejoinder.errors import MalformedInput, StateError, UnknownName
from tests.spark.conftest import OpenFlow
from tests.spark.files import write_rows
from tests.spark.rows import bag, view, wait_until


def files_of(flow: rj.Flow, tmp_path: Path, name: str) -> Path:
    """Create a stream on a folder of files."""
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    flow.sql(f"CREATE STREAM IF NOT EXISTS {name} (id BIGINT) USING parquet OPTIONS (path '{folder}')")
    return folder


def test_sources_come_and_go(open_flow: OpenFlow, tmp_path: Path) -> None:
    """Each source is read from its start, once, whatever happens to the others."""
    flow = open_flow()
    a, b, c = (files_of(flow, tmp_path, name) for name in "abc")
    flow.sql("CREATE VIEW va AS SELECT id FROM a")
    for number in range(3):  # Spark's offsets count for themselves, not in epochs
        write_rows(a / f"{number}.parquet", [{"id": number}])
        flow.run()
    write_rows(b / "0.parquet", [{"id": 10}])
    write_rows(a / "3.parquet", [{"id": 3}])
    flow.sql("CREATE VIEW vb AS SELECT id FROM b")
    flow.run()
    assert view(flow, "va") == bag([(i,) for i in range(4)]) and view(flow, "vb") == bag([(10,)])
    flow = open_flow()
    flow.sql("DROP VIEW va")
    write_rows(a / "4.parquet", [{"id": 4}])
    write_rows(b / "1.parquet", [{"id": 11}])
    write_rows(c / "0.parquet", [{"id": 20}])
    flow.sql("CREATE VIEW vc AS SELECT id FROM c")
    flow.run()
    assert view(flow, "vb") == bag([(10,), (11,)]) and view(flow, "vc") == bag([(20,)])
    flow.sql("CREATE VIEW va AS SELECT id FROM a")
    write_rows(b / "2.parquet", [{"id": 12}])
    flow.run()
    assert view(flow, "va") == bag([(i,) for i in range(5)]) and view(flow, "vb") == bag([(10,), (11,), (12,)])
    assert flow.run() == []
    assert open_flow().run() == []


def test_a_source_dropped_and_created_again_starts_afresh(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow()
    a, b = files_of(flow, tmp_path, "a"), files_of(flow, tmp_path, "b")
    flow.sql("CREATE VIEW v AS SELECT a.id FROM a JOIN b ON a.id = b.id")
    for number in range(2):
        write_rows(a / f"{number}.parquet", [{"id": number}])
        write_rows(b / f"{number}.parquet", [{"id": number}])
        flow.run()
    assert view(flow, "v") == bag([(0,), (1,)])
    flow.sql("DROP VIEW v; DROP STREAM a")
    files_of(flow, tmp_path, "a")
    (a / "0.parquet").unlink()
    flow.sql("CREATE VIEW v AS SELECT a.id FROM a JOIN b ON a.id = b.id")
    flow.run()
    assert view(flow, "v") == bag([(1,)])


def test_new_drivers_around_a_compaction_of_spark_s_log(open_flow: OpenFlow, tmp_path: Path) -> None:
    """Spark puts every ten entries of a source's log into one; what is read stays read, what failed is read again."""
    flow, folder = open_flow(), tmp_path / "a"
    folder.mkdir()
    flow.sql(f"CREATE STREAM a (id BIGINT) USING json OPTIONS (path '{folder}', maxFilesPerTrigger '1')")
    flow.sql("CREATE VIEW va AS SELECT id FROM a")
    for number in range(23):
        path = folder / f"{number:02}.json"
        path.write_text(f'{{"id": {number}}}\n' if number not in (9, 19) else "not yet")
        if number in (8, 10, 18, 20):
            flow.run()
            flow = open_flow()
        if number in (9, 19):  # the entry that is a compaction belongs to an epoch that fails
            with pytest.raises(MalformedInput):
                flow.run()
            path.write_text(f'{{"id": {number}}}\n')
            flow = open_flow()
    flow.run()
    assert view(flow, "va") == bag([(i,) for i in range(23)]) and flow.epoch == 22


def test_views_of_a_running_flow(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow()
    flow.start()
    assert flow.is_running and flow.wait(1)
    a, b = files_of(flow, tmp_path, "a"), files_of(flow, tmp_path, "b")
    flow.sql("CREATE VIEW va AS SELECT id FROM a")
    write_rows(a / "0.parquet", [{"id": i} for i in range(100)])
    write_rows(b / "0.parquet", [{"id": i} for i in range(0, 200, 2)])
    wait_until(lambda: view(flow, "va").total() == 100)
    flow.sql("CREATE VIEW ab AS SELECT a.id FROM a JOIN b ON a.id = b.id")
    wait_until(lambda: view(flow, "ab").total() == 50)
    flow.sql("CREATE VIEW small AS SELECT DISTINCT id % 7 AS r FROM ab WHERE id < 50")
    assert view(flow, "small") == bag([(i,) for i in range(7)]), "filled when the statement is done"
    for number in range(1, 4):
        write_rows(a / f"{number}.parquet", [{"id": 100 + number}])
        flow.sql(f"CREATE VIEW more{number} AS SELECT id + {number} AS id FROM ab")
    wait_until(lambda: view(flow, "more3").total() == 51)
    flow.sql("DROP VIEW more1; DROP VIEW small; DROP VIEW more2; DROP VIEW more3; DROP VIEW ab; DROP VIEW va")
    assert flow.is_running, "with nothing to read"
    flow.sql("CREATE VIEW vb AS SELECT id FROM b")
    wait_until(lambda: view(flow, "vb").total() == 100)
    with pytest.raises(StateError, match="already running"):
        flow.run()
    with pytest.raises(StateError, match="already running"):
        flow.start()
    flow.stop()
    assert flow.engine.dataflow.scans.keys() == {"b"}


def test_a_wrong_statement_does_not_stop_a_running_flow(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow()
    a = files_of(flow, tmp_path, "a")
    flow.sql("CREATE VIEW va AS SELECT id FROM a")
    flow.start()
    with pytest.raises(UnknownName):
        flow.sql("CREATE VIEW wrong AS SELECT ida FROM a")
    write_rows(a / "0.parquet", [{"id": 1}])
    wait_until(lambda: view(flow, "va").total() == 1)
    flow.stop()


def is_in_an_epoch(flow: rj.Flow) -> bool:
    """Whether somebody else holds the lock of the engine."""
    is_free = flow.engine.lock.acquire(blocking=False)
    if is_free:
        flow.engine.lock.release()
    return not is_free


def test_stop_in_the_middle_of_an_epoch_waits_for_it(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow()
    a = files_of(flow, tmp_path, "a")
    flow.sql("CREATE VIEW va AS SELECT id FROM a")
    for turn in range(3):
        flow.start()
        write_rows(a / f"{turn}.parquet", [{"id": i} for i in range(1000)])
        wait_until(lambda: is_in_an_epoch(flow))
        flow.stop()
        assert flow.epoch == turn
    assert flow.run() == [] and view(flow, "va").total() == 3000


def test_stop_at_any_moment(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow()
    a = files_of(flow, tmp_path, "a")
    flow.sql("CREATE VIEW va AS SELECT id FROM a")
    for turn in range(12):
        flow.start()
        write_rows(a / f"{turn}.parquet", [{"id": turn}])
        time.sleep(0.03 * turn)
        flow.stop()
    flow.run()
    assert view(flow, "va") == bag([(i,) for i in range(12)])


def test_two_flows_at_once_on_one_session(spark: SparkSession, tmp_path: Path) -> None:
    """What an epoch of one needs to know must not reach the tasks of the other."""
    flows = [rj.Flow(tmp_path / f"state{at}", spark=spark, parallelism=2) for at in range(2)]
    for at, flow in enumerate(flows):
        flow.sql(
            f"CREATE CHANGELOG m (id BIGINT); CREATE VIEW v AS SELECT x.id + {at} AS id FROM m x JOIN m y USING (id)"
        )
        flow.start()
    for turn in range(5):
        for at, flow in enumerate(flows):
            flow.insert("m", [{"id": 10 * turn + at}])
    for at, flow in enumerate(flows):
        wait_until(lambda flow=flow: view(flow, "v").total() == 5)  # type: ignore[misc]
        flow.stop()
        assert view(flow, "v") == bag([(10 * turn + 2 * at,) for turn in range(5)])


def test_a_listener_cannot_stop_its_flow(flow: rj.Flow) -> None:
    flow.sql("CREATE STREAM a (id BIGINT)")
    flow.sql("CREATE VIEW v AS SELECT id FROM a")
    flow.on_progress(lambda _: flow.stop())
    flow.insert("a", [{"id": 1}])
    with pytest.raises(StateError, match="cannot be stopped or restarted by a function that it calls after an epoch"):
        flow.run()
    assert view(flow, "v") == bag([(1,)]), "the epoch was committed before"


def test_a_view_is_replaced_while_the_flow_runs(open_flow: OpenFlow, tmp_path: Path) -> None:
    """The difference is an epoch of its own, between those of Spark; nothing is read twice or skipped."""
    flow = open_flow()
    a = files_of(flow, tmp_path, "a")
    flow.sql("CREATE VIEW v AS SELECT id FROM a WHERE id < 5; CREATE VIEW w AS SELECT count(*) AS n FROM v")
    delivered: list[tuple[int, list[tuple[int, int]]]] = []

    def take(epoch: int, changes: DataFrame) -> None:
        delivered.append((epoch, sorted((row["id"], row["_diff"]) for row in changes.collect())))

    flow.foreach_epoch("v", take)
    flow.start()
    write_rows(a / "0.parquet", [{"id": i} for i in range(10)])
    wait_until(lambda: flow.epoch == 0)
    flow.replace("v", "SELECT id FROM a WHERE id >= 3")
    assert flow.epoch == 1 and flow.is_running
    write_rows(a / "1.parquet", [{"id": 1}, {"id": 11}])
    wait_until(lambda: flow.epoch == 2)
    flow.stop()
    assert delivered[0] == (0, [(i, 1) for i in range(5)])
    assert delivered[1] == (1, [(0, -1), (1, -1), (2, -1), *((i, 1) for i in range(5, 10))])
    assert delivered[2] == (2, [(11, 1)])
    flow = open_flow()
    flow.foreach_epoch("v", take)
    flow.replace("v", "SELECT id FROM a WHERE id >= 9")
    write_rows(a / "2.parquet", [{"id": 12}])
    flow.run()
    assert flow.epoch == 4
    assert view(flow, "v") == bag([(9,), (11,), (12,)]) and view(flow, "w") == bag([(3,)])
    assert [epoch for epoch, _ in delivered] == [0, 1, 2, 3, 4]
    assert flow.run() == []

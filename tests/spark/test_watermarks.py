"""Watermarks on Spark: observed by the tasks, explicit, idle by message and by silence, without input."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

import rejoinder as rj
from rejoinder.errors import InputError, InvalidSql, MissingInput, WatermarkRegress
from rejoinder.testing import Driver
from tests.spark.conftest import OpenFlow
from tests.spark.files import write_rows
from tests.spark.rows import bag, view, wait_until

NOON = datetime(2024, 1, 1, 12)


def define(flow: rj.Flow, folder: Path, options: str) -> None:
    folder.mkdir(exist_ok=True)
    columns = "id INT, ts TIMESTAMP, p INT, WATERMARK ts DELAY OF INTERVAL 1 MINUTE"
    flow.sql(f"CREATE STREAM s ({columns}) USING json OPTIONS (path '{folder}', partition_by 'p', {options})")
    flow.sql("CREATE VIEW past AS SELECT id FROM s EMIT WHEN WATERMARK PAST ts")


def put(folder: Path, name: str, *rows: tuple[int, int, int]) -> None:
    """A file of rows (id, minute, partition)."""
    listed = [{"id": i, "ts": str(NOON + timedelta(minutes=minute)), "p": p} for i, minute, p in rows]
    write_rows(folder / f"{name}.json", listed)


def test_partitions_are_observed_by_tasks_and_kept_over_restarts(
    open_flow: OpenFlow, state: str, tmp_path: Path
) -> None:
    flow, folder = open_flow(), tmp_path / "in"
    define(flow, folder, "partitions '3', max_ahead 'INTERVAL 1 DAY'")
    put(folder, "1", (1, 10, 0), (2, 3, 1))
    put(folder, "2", (3, 5, 0), (4, 8, 1), (5, 60 * 24 * 36500, 1))
    flow.run()
    assert view(flow, "past") == bag([]), "partition 2 has sent nothing"
    assert [(row["partition"], row["watermark"], row["blocks"]) for row in flow.watermarks()] == [
        (0, NOON + timedelta(minutes=9), []),
        (1, NOON + timedelta(minutes=7), []),
        (2, None, ["past"]),
    ]
    assert [row["text"] for row in flow.arrow("s.rejected").to_pylist()] == [
        '{"id":5,"ts":"2123-12-08 12:00:00","p":1}'
    ]
    with pytest.raises(MissingInput, match="its partitions are 0, 1, 2"):
        flow.idle("s", 3)
    with pytest.raises(InvalidSql, match="has no watermark"):
        flow.idle("past")
    flow = open_flow(parallelism=3)
    flow.idle("s", 2)
    flow.run()
    assert view(flow, "past") == bag([(2,), (3,)]), "an epoch without input lets out"
    flow.sql("CREATE VIEW misses AS SELECT input, count(*) AS n FROM past.late GROUP BY input")
    put(folder, "3", (6, 2, 2), (7, 30, 0))
    flow.run()
    assert [row["source_watermark"] for row in flow.watermarks()] == [NOON + timedelta(minutes=7)] * 3, (
        "it is back, and holds"
    )
    assert [row["row"] for row in flow.arrow("past.late").to_pylist()] == ['{"id":6,"ts":"2024-01-01 12:02:00","p":2}']
    assert flow.progress[-1]["late"] == {"past": {"s": 1}} and view(flow, "misses") == bag([("s", 1)])
    assert Driver(store=state).sql("SHOW WATERMARKS") == flow.watermarks()


def test_a_running_flow_goes_on_without_silent_partitions(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow, folder = open_flow(), tmp_path / "in"
    define(flow, folder, "idle_after 'INTERVAL 1 SECOND'")
    put(folder, "1", (1, 10, 0), (2, 3, 1), (3, 6, 0))
    flow.start()
    wait_until(lambda: flow.epoch >= 0)
    put(folder, "2", (4, 20, 0))
    wait_until(lambda: view(flow, "past") == bag([(1,), (2,), (3,)]))
    wait_until(lambda: all(row["idle_since"] for row in flow.watermarks()))
    epoch = flow.epoch
    flow.stop()
    other = tmp_path / "other"
    other.mkdir()
    columns = "id INT, n INT, p INT, WATERMARK n DELAY OF 0"
    flow.sql(f"CREATE STREAM t ({columns}) USING json OPTIONS (path '{other}', partition_by 'p')")
    flow.sql("CREATE VIEW plain AS SELECT id FROM t EMIT WHEN WATERMARK PAST n; DROP VIEW past; DROP STREAM s")
    flow.start()
    write_rows(other / "1.json", [{"id": 1, "n": 1, "p": 0}, {"id": 2, "n": 5, "p": 1}])
    wait_until(lambda: flow.epoch > epoch)
    flow.idle("t", 0)
    wait_until(lambda: view(flow, "plain") == bag([(1,)]))
    assert flow.is_running


def test_explicit_watermarks_count_when_earlier_rows_are_read(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow, folder = open_flow(), tmp_path / "in"
    folder.mkdir()
    columns = "id INT, n INT, WATERMARK n"
    flow.sql(f"CREATE STREAM s ({columns}) USING json OPTIONS (path '{folder}', maxFilesPerTrigger '1')")
    flow.sql(f"CREATE STREAM m ({columns})")
    for name in ("s", "m"):
        flow.sql(f"CREATE VIEW past_{name} AS SELECT id FROM {name} EMIT WHEN WATERMARK PAST n")
    for file in range(3):
        write_rows(folder / f"{file}.json", [{"id": file, "n": file}])
    flow.watermark("s", 10)
    flow.insert("m", [{"id": 1, "n": 4}])
    flow.run()
    assert view(flow, "past_s") == bag([(0,), (1,), (2,)]), "an epoch reads one file, and none of them is late"
    assert view(flow, "past_m") == view(flow, "past_s.late") == bag([])
    for time, column, error in ((10, None, WatermarkRegress), ("x", None, InputError), (11, "id", InputError)):
        with pytest.raises(error):
            flow.watermark("s", time, column)
    with pytest.raises(InvalidSql, match="has no watermark"):
        flow.watermark("past_s", 11)
    flow.start()
    for number in range(3, 7):
        write_rows(folder / f"{number}.json", [{"id": number, "n": 10 + number}])
    flow.watermark("s", 20)
    flow.insert("m", [{"id": 2, "n": 5}])
    flow.watermark("m", 6)

    def has_come() -> bool:
        flow.insert("m", [{"id": 3, "n": 100}])  # never quiet, and yet its own order is known
        return len(view(flow, "past_s")) == 7 and len(view(flow, "past_m")) == 2

    wait_until(has_come)
    assert [row["watermark"] for row in flow.watermarks()] == [20, 6]
    write_rows(folder / "late.json", [{"id": 9, "n": 19}])
    wait_until(lambda: len(view(flow, "past_s.late")) > 0)
    flow.stop()
    assert [row["row"] for row in flow.arrow("past_s.late").to_pylist()] == ['{"id":9,"n":19}']
    flow = open_flow()
    with pytest.raises(WatermarkRegress, match="does not rise"):
        flow.watermark("m", 6)
    flow.watermark("m", 7)
    flow.run()
    assert [row["watermark"] for row in flow.watermarks()] == [20, 7]

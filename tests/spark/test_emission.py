"""EMIT on Spark: the same rows are emitted in the same epoch as with `testing.Driver`; ticks where no input arrives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import rejoinder as rj
from rejoinder.cli.main import app
from rejoinder.engine.executors import spark_executor
from rejoinder.errors import DefinitionConflict, InvalidSql, RejoinderError
from rejoinder.exchange.streaming.checkpoint import TICKS
from rejoinder.testing import Driver
from tests.deep import DEEP
from tests.spark.conftest import OpenFlow
from tests.spark.files import write_rows
from tests.spark.rows import bag, view, wait_until

START = datetime(2024, 1, 1, 12)
CLICKS = "clicks (id INT, page STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 2 MINUTES)"
MEMORY = """
CREATE STREAM rates (cur STRING, rate INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE STREAM orders (id INT, cur STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 0 SECONDS);
CREATE TABLE pages (page STRING, title STRING, PRIMARY KEY (page));
"""
VALID = (
    "(SELECT cur, MAX(rate) AS rate, VALIDITY_WINDOW(ts) AS w FROM rates GROUP BY cur, VALIDITY_WINDOW(ts)) v"
    " ON o.cur = v.cur AND WINDOW_START(v.w) <= o.ts AND o.ts < WINDOW_END(v.w)"
)
VIEWS = {
    "at_once": "SELECT page, count(*) AS n FROM clicks GROUP BY page EMIT CHANGES",
    "every": "SELECT page, count(*) AS n FROM clicks GROUP BY page EMIT EVERY INTERVAL 10 SECONDS",
    "titles": "SELECT c.id, p.title FROM clicks c LEFT JOIN pages p ON c.page = p.page EMIT EVERY INTERVAL 1 MINUTE",
    "windows": "SELECT WINDOW_START(TUMBLE(ts, INTERVAL '5' MINUTE)) AS s, page, count(*) AS n FROM clicks"
    " GROUP BY page, TUMBLE(ts, INTERVAL '5' MINUTE) EMIT FINAL",
    "past": "SELECT id, page FROM clicks EMIT WHEN WATERMARK PAST ts",
    "priced": f"SELECT o.id, v.rate FROM orders o JOIN {VALID} EMIT WHEN WATERMARK PAST WINDOW_END(v.w)",
}


def epoch_rows(random: np.random.Generator, number: int) -> dict[str, list[dict[str, Any]]]:
    """The input of an epoch: times go up by minutes, and many are out of order."""

    def some(most: int) -> range:
        return range(int(random.integers(0, most)))

    def at(spread: int) -> datetime:
        return START + timedelta(minutes=2 * number, seconds=int(random.integers(-spread, spread)))

    return {
        "clicks": [{"id": 100 * number + i, "page": f"p{random.integers(3)}", "ts": at(119)} for i in some(12)],
        "rates": [
            {"cur": f"c{random.integers(2)}", "rate": int(random.integers(90, 99)), "ts": at(55)} for _ in some(4)
        ],
        "orders": [{"id": 100 * number + i, "cur": f"c{random.integers(2)}", "ts": at(1)} for i in some(4)],
        "pages": [{"page": f"p{i}", "title": f"t{random.integers(4)}"} for i in some(3)],
    }


def changes(driver: Driver, name: str) -> Counter[tuple[Any, ...]]:
    """All changes of a view, with their epochs and times."""
    return Counter(tuple(row.values()) for row in driver.stream(name))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=DEEP)])
def test_every_policy_gives_what_the_driver_gives(open_flow: OpenFlow, state: str, tmp_path: Path, seed: int) -> None:
    """Change for change and epoch for epoch, over restarts with other parallelism."""
    random, now = np.random.default_rng(seed), [1_700_000_000_000]
    flow, driver = open_flow(), Driver()
    (tmp_path / "clicks").mkdir()
    flow.sql(f"CREATE STREAM {CLICKS} USING parquet OPTIONS (path '{tmp_path}/clicks')")
    driver.sql(f"CREATE STREAM {CLICKS}")
    for each in (flow, driver):
        each.sql(MEMORY)
        for name, query in VIEWS.items():
            each.sql(f"CREATE VIEW {name} AS {query}")
    for number in range(7):
        now[0] += int(random.integers(1, 30)) * 1000
        flow.engine.clock = lambda: now[0]
        rows = epoch_rows(random, number)
        rows["clicks"] = rows["clicks"] or [{"id": -1, "page": "p0", "ts": START}]  # an epoch needs some input
        for name, listed in rows.items():
            driver.insert(name, *listed)
            if name == "clicks":
                write_rows(tmp_path / "clicks" / f"{number}.parquet", listed)
            elif listed:
                flow.insert(name, listed)
        flow.run()
        driver.step(now[0])
        assert flow.epoch == driver.epoch == number
        if number in (2, 4):
            flow = open_flow(parallelism=3 if number == 2 else 1)
    seen = Driver(store=state)
    for name in VIEWS:
        assert changes(seen, name) == changes(driver, name), f"{name}, seed {seed}"
        assert changes(driver, name), f"{name} let something out, seed {seed}"
    assert {row["_epoch"] for row in driver.stream("every")} < {row["_epoch"] for row in driver.stream("at_once")}
    shown = (flow.watermarks(), driver.sql("SHOW WATERMARKS"))
    told = [{(row["source"], row["column"]): row["source_watermark"] for row in rows} for rows in shown]
    assert told[0] == told[1]


def per_second(flow: rj.Flow) -> None:
    """A count that is emitted once a second."""
    flow.sql("CREATE CHANGELOG c (k INT); CREATE VIEW n AS SELECT k, count(*) AS n FROM c GROUP BY k")
    flow.sql("CREATE VIEW slow AS SELECT k, count(*) AS n FROM c GROUP BY k EMIT EVERY INTERVAL 1 SECOND")


def is_ticking() -> bool:
    return any(thread.name == "rejoinder-ticks" for thread in threading.enumerate())


def ticks_in(state: str) -> list[str]:
    return os.listdir(f"{state}/ticks")


def test_time_goes_on_while_changes_wait_and_no_longer(open_flow: OpenFlow, state: str) -> None:
    flow = open_flow()
    per_second(flow)
    flow.start()
    flow.insert("c", [{"k": 1}, {"k": 1}, {"k": 2}])
    wait_until(lambda: view(flow, "slow") == bag([(1, 2), (2, 1)]))
    assert view(flow, "n") == view(flow, "slow")
    assert flow.engine.seconds_to_tick() is None
    time.sleep(0.5)  # the epoch of a tick that came to nothing
    before = flow.epoch
    time.sleep(2.5)
    assert flow.epoch == before and len(ticks_in(state)) <= 1, "where nothing waits, nothing runs"
    for turn in range(3):
        flow.delete("c", [{"k": 1}] if turn == 0 else [{"k": 2}])
        flow.insert("c", [{"k": 2}])
        time.sleep(0.4)
    wait_until(lambda: view(flow, "slow") == bag([(1, 1), (2, 2)]))
    assert len(ticks_in(state)) == 1, "old ticks are gone"
    flow.stop()
    assert not is_ticking()


def reads_ticks(flow: rj.Flow) -> bool:
    spark = flow.engine.version.positions.spark
    return spark is not None and TICKS in spark.streams


def test_ticks_survive_definitions_and_restarts(open_flow: OpenFlow) -> None:
    flow = open_flow()
    flow.sql("CREATE CHANGELOG c (k INT); CREATE VIEW n AS SELECT k FROM c")
    flow.start()
    assert not is_ticking() and not reads_ticks(flow)
    flow.insert("c", [{"k": 1}])
    wait_until(lambda: view(flow, "n").total() == 1)
    flow.sql("CREATE VIEW slow AS SELECT k FROM c EMIT EVERY INTERVAL 1 SECOND")
    assert is_ticking() and reads_ticks(flow)
    wait_until(lambda: view(flow, "slow").total() == 1)
    flow.insert("c", [{"k": 2}])
    flow.sql("CREATE VIEW other AS SELECT k + 1 AS k FROM c")
    wait_until(lambda: view(flow, "slow").total() == 2)
    flow.stop()
    flow.insert("c", [{"k": 3}])
    flow = open_flow(parallelism=3)
    flow.start()
    wait_until(lambda: view(flow, "slow").total() == 3)
    flow.sql("DROP VIEW slow")
    assert not is_ticking() and not reads_ticks(flow)
    flow.insert("c", [{"k": 4}])
    wait_until(lambda: view(flow, "other").total() == 4)
    flow.sql("CREATE VIEW slow AS SELECT k FROM c EMIT EVERY INTERVAL 1 SECOND")
    wait_until(lambda: view(flow, "slow") == bag([(1,), (2,), (3,), (4,)]))
    flow.stop()
    assert view(flow, "n").total() == 4 and not is_ticking()


def test_an_error_ends_the_ticks(open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow()
    (tmp_path / "in").mkdir()
    flow.sql(f"CREATE STREAM s (id INT) USING json OPTIONS (path '{tmp_path}/in')")
    flow.sql("CREATE VIEW slow AS SELECT id FROM s EMIT EVERY INTERVAL 1 SECOND")
    flow.start()
    (tmp_path / "in" / "bad.json").write_text("oops")
    with pytest.raises(RejoinderError):
        flow.wait()
    assert not is_ticking() and not flow.is_running
    (tmp_path / "in" / "bad.json").write_text('{"id": 1}')
    flow.start()
    wait_until(lambda: view(flow, "slow") == bag([(1,)]))


def test_run_lets_out_what_is_due_and_leaves_the_rest(open_flow: OpenFlow) -> None:
    flow, now = open_flow(), [1_700_000_003_000]
    flow.engine.clock = lambda: now[0]
    flow.sql("CREATE STREAM s (id INT); CREATE VIEW slow AS SELECT id FROM s EMIT EVERY INTERVAL 10 SECONDS")
    flow.insert("s", [{"id": 1}])
    assert [progress.rows_out for progress in flow.run()] == [{}]
    assert flow.run() == [] and flow.engine.seconds_to_tick() == 7, "too early"
    now[0] += 7000
    flow = open_flow()
    flow.engine.clock = lambda: now[0]
    assert [(progress.rows_in, progress.rows_out) for progress in flow.run()] == [({}, {"slow": 1})]
    assert flow.run() == [] and view(flow, "slow") == bag([(1,)])


def test_a_clock_that_is_set_back_lets_nothing_out_twice(open_flow: OpenFlow) -> None:
    flow, now = open_flow(), [1_700_000_003_000]
    flow.engine.clock = lambda: now[0]
    flow.sql("CREATE STREAM s (id INT); CREATE VIEW slow AS SELECT id FROM s EMIT EVERY INTERVAL 10 SECONDS")
    for number, step in enumerate([0, 8000, -20_000, 16_000, 30_000]):
        now[0] += step
        flow.insert("s", [{"id": number}])
        flow.run()
    now[0] += 10_000
    flow.run()
    assert view(flow, "slow") == bag([(number,) for number in range(5)])


def marks(source: str, column: str, value: object, delay: str, blocks: Sequence[str] = ()) -> dict[str, object]:
    """A row of SHOW WATERMARKS, of a source with one partition."""
    both = {"watermark": value, "source_watermark": value}
    return {
        "source": source,
        "partition": 0,
        "column": column,
        **both,
        "delay": delay,
        "idle_since": None,
        "blocks": [*blocks],
    }


def test_event_time_of_data_frames(spark: SparkSession, flow: rj.Flow, tmp_path: Path) -> None:
    schema = "id INT, ts TIMESTAMP, day DATE, n BIGINT, op STRING"
    folders = {name: tmp_path / name for name in ("s", "t", "c")}
    for number, folder in enumerate(folders.values()):
        rows = [(i, START + timedelta(minutes=10 * number + i), date(2024, 1, 9), 1000 + i, "u") for i in range(3)]
        spark.createDataFrame(rows, schema).coalesce(1).write.parquet(str(folder))
    s, t, c = (spark.readStream.schema(schema).parquet(str(folder)) for folder in folders.values())
    flow.stream("s", s, event_time="TS", delay="90 seconds")
    flow.keyed("t", t, key="id", event_time="day", delay="2 days")
    flow.changelog("c", c, op="op", event_time="n", delay=5)
    flow.sql("CREATE VIEW past AS SELECT id FROM s EMIT WHEN WATERMARK PAST ts")
    flow.sql("CREATE VIEW v AS SELECT t.id FROM t JOIN c ON t.id = c.id")
    assert [row["watermark"] for row in flow.watermarks()] == [None, None, None]
    flow.run()
    assert (
        flow.watermarks()
        == flow.sql("SHOW WATERMARKS")
        == [
            marks("s", "ts", START + timedelta(seconds=30), "90 seconds", ["past"]),
            marks("t", "day", date(2024, 1, 7), "2 days"),
            marks("c", "n", 997, "5"),
        ]
    )
    assert view(flow, "past") == bag([(0,)])
    with pytest.raises(DefinitionConflict, match="other columns or watermarks"):
        flow.stream("s", s, event_time="ts", delay="1 second")
    with pytest.raises(InvalidSql, match="a delay and no event-time column"):
        flow.stream("more", s, delay="1 second")
    with pytest.raises(InvalidSql, match="is not a length of time"):
        flow.stream("more", s, event_time="ts", delay="1 month")
    with pytest.raises(InvalidSql, match="which is of type string"):
        flow.stream("more", s, event_time="op", delay="1 second")


def test_the_command_line_says_what_waits(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 7}\n')
    (tmp_path / "flow.sql").write_text(
        "CREATE STREAM s (id INT, WATERMARK id DELAY OF 1) USING json OPTIONS (path 'in');"
        "CREATE VIEW slow AS SELECT id FROM s EMIT EVERY INTERVAL 1 DAY;"
        "CREATE VIEW past AS SELECT id FROM s EMIT WHEN WATERMARK PAST id;"
        "CREATE VIEW plain AS SELECT id FROM s"
    )
    done = CliRunner().invoke(app, ["run", "flow.sql"])
    assert done.exit_code == 0 and "1 row in, 1 change out" in done.stderr, "of `plain`; nothing else is out"
    notes = [line.strip() for line in done.stderr.splitlines() if "wait" in line]
    assert len(notes) == 2 and notes[1] == "changes of `past` wait for the watermark of s.id"
    assert notes[0].startswith("changes of `slow` wait until ") and notes[0].endswith(" 00:00:00 (UTC)")


@DEEP
def test_following_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 7}\n')
    (tmp_path / "flow.sql").write_text(
        "CREATE STREAM s (id INT) USING json OPTIONS (path 'in');"
        "CREATE VIEW slow AS SELECT id FROM s EMIT EVERY INTERVAL 2 SECONDS;"
    )
    command = [sys.executable, "-m", "rejoinder.cli.main", "run", "flow.sql", "--follow", "--watch", "slow"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            shown = [process.stdout.readline(), process.stdout.readline()]
            process.send_signal(signal.SIGINT)
            rest, told = process.communicate(timeout=90)
        finally:
            process.kill()
    assert [line.split() for line in shown][1] == ["+", "7"] and "1 added" in shown[0]
    assert (process.returncode, rest) == (0, "")
    assert "1 row in, 1 change out" in told and "Traceback" not in told


@pytest.mark.parametrize("is_little", [True, False])
def test_what_becomes_due_is_a_job_of_its_own_only_if_it_is_much(
    flow: rj.Flow, monkeypatch: pytest.MonkeyPatch, is_little: bool
) -> None:
    if not is_little:
        monkeypatch.setattr(spark_executor, "IN_PROCESS_ROWS", -1)
    columns = "id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 0 SECONDS"
    flow.sql(f"CREATE STREAM a ({columns}) OPTIONS (maxFilesPerTrigger '1')")
    flow.sql("CREATE VIEW v AS SELECT id FROM a EMIT WHEN WATERMARK PAST ts")
    for number in range(3):
        flow.insert("a", [{"id": number, "ts": START + timedelta(hours=number)}])
    epochs = flow.run()
    query = flow._runner.query
    assert query is not None
    jobs = flow.spark.sparkContext.statusTracker().getJobIdsForGroup(str(query.runId))
    assert len(epochs) == 3 and (len(jobs) == 3 if is_little else len(jobs) > 3)
    assert {1, 0} <= {row["id"] for row in flow.arrow("v").to_pylist()}


@pytest.mark.parametrize("most", [spark_executor.IN_PROCESS_ROWS, 0], ids=["in this process", "in a job"])
def test_a_row_leaves_a_temporal_filter_without_further_input(
    open_flow: OpenFlow, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(spark_executor, "IN_PROCESS_ROWS", most)
    flow = open_flow()
    flow.sql("CREATE STREAM events (id INT, ts TIMESTAMP)")
    flow.sql("CREATE VIEW recent AS SELECT id FROM events WHERE ts > now() - INTERVAL 5 SECONDS")
    flow.insert("events", [{"id": 1, "ts": datetime.now(timezone.utc) + timedelta(seconds=10)}])
    flow.start()
    wait_until(lambda: [epoch["rows_out"] for epoch in flow.progress] == [{"recent": 1}] * 2)
    assert view(flow, "recent") == bag([])

"""Our Spark settings are in force on a session that we create, and a session of the user stays as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import rejoinder as rj
from rejoinder.engine.executors import spark_executor
from rejoinder.exchange.session.spark_session import LOCAL_JAVA_OPTIONS, SETTINGS
from rejoinder.exchange.streaming.streaming_query import INTERPRETED
from rejoinder.exchange.tasks.spark_rounds import attach, listed_splits, run_attached
from rejoinder.ir.splits import StateSplit
from tests.conftest import NAMED
from tests.deep import DEEP
from tests.spark.conftest import OpenFlow
from tests.spark.rows import bag, view


def in_workers(spark: SparkSession, tasks: int = 4) -> list[dict[str, Any]]:
    """What workers say of themselves, from inside a stage as the engine runs it."""

    def tell(work: str, batches: Any) -> Iterator[Any]:
        import gc
        import json
        import os
        import sys
        import time

        import pyarrow as pa

        time.sleep(0.1)  # so that one worker does not take all tasks
        about = {"pid": os.getpid(), "python": sys.executable, "frozen": gc.get_freeze_count(), "work": work}
        about["environment"] = dict(os.environ)
        rows = sum(batch.num_rows for batch in batches)
        names = ["bucket", "channel", "payload"]
        columns = [[0] * rows, [7] * rows, [json.dumps(about).encode()] * rows]
        types = [pa.int32(), pa.int32(), pa.binary()]
        yield pa.RecordBatch.from_arrays([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names)

    frame = attach(listed_splits(spark, [StateSplit("x", number) for number in range(tasks)]), [tell], 2)
    return [json.loads(payload) for _, _, payload in run_attached(frame, "the epoch's work")]


@pytest.mark.parametrize("setting", sorted(SETTINGS))
def test_setting_is_in_force(spark: SparkSession, setting: str) -> None:
    assert spark.conf.get(setting) == SETTINGS[setting]


def test_java_options(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    given = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert set(LOCAL_JAVA_OPTIONS.split()) <= set(given)
    assert "-XX:TieredStopAtLevel=1" in LOCAL_JAVA_OPTIONS


def test_local_tasks_are_tried_four_times(spark: SparkSession) -> None:
    assert spark.sparkContext.master == "local[2,4]"


def test_no_web_server(spark: SparkSession) -> None:
    assert spark.sparkContext.uiWebUrl is None


def test_workers(spark: SparkSession) -> None:
    told = in_workers(spark)
    assert {each["python"] for each in told} == {sys.executable}, "the worker's Python is the driver's"
    assert all(each["frozen"] > 1000 for each in told), "imported modules are out of the collector's sight"
    assert {each["work"] for each in told} == {"the epoch's work"}
    assert all(each["environment"]["PYTHON_UNIX_DOMAIN_ENABLED"] == "True" for each in told)
    again = {each["pid"] for each in in_workers(spark)}
    assert again & {each["pid"] for each in told}, "workers are used again"


def test_hadoop_is_spared_what_each_epoch_would_repeat(spark: SparkSession, flow: rj.Flow, state: str) -> None:
    flow.sql("CREATE STREAM a (id BIGINT)")
    flow.sql("CREATE VIEW v AS SELECT id FROM a")
    flow.insert("a", [{"id": 1}])
    flow.run()
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    assert 0 < hadoop.size() < 600, "also after all that an epoch loads"
    assert hadoop.get("mapreduce.fileoutputcommitter.algorithm.version") == "1", "what Spark itself sets stays"
    assert hadoop.get(NAMED.removeprefix("spark.hadoop.")) == "7", "and what the user sets"
    assert not list(Path(state).rglob("*.crc"))


class Watch:
    """What the engine hands to Spark and gets back, epoch by epoch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.frames: list[DataFrame] = []
        self.collected: list[int] = []
        monkeypatch.setattr(spark_executor, "run_attached", self.run)

    def run(self, rows: DataFrame, work: str, description: str) -> list[tuple[int, int, bytes]]:
        result = run_attached(rows, work, description)
        self.frames.append(rows)
        self.collected.append(sum(len(payload) for _, _, payload in result))
        return result


def jobs_of(flow: rj.Flow) -> list[Any]:
    """The jobs of the last run."""
    query = flow._runner.query
    assert query is not None
    tracker = flow.spark.sparkContext.statusTracker()
    jobs = tracker.getJobIdsForGroup(str(query.runId))
    return [tracker.getJobInfo(job) for job in jobs]


def test_an_epoch_is_one_job_that_returns_metadata_only(flow: rj.Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    flow.sql("CREATE STREAM a (id BIGINT, x STRING) OPTIONS (maxFilesPerTrigger '1')")
    flow.sql("CREATE TABLE b (id BIGINT, y STRING, PRIMARY KEY (id)) OPTIONS (maxFilesPerTrigger '1')")
    flow.sql("CREATE VIEW v AS SELECT a.id, x, y FROM a JOIN b ON a.id = b.id")
    for turn in range(3):
        rows = range(turn * 2000, (turn + 1) * 2000)
        flow.insert("a", [{"id": i, "x": f"{i:0100}"} for i in rows])
        flow.insert("b", [{"id": i, "y": f"{i:0100}"} for i in rows])
    epochs = flow.run()
    jobs = jobs_of(flow)
    assert len(epochs) == len(jobs) == 3
    assert [len(job.stageIds) for job in jobs] == [2, 2, 2], "read and scatter; arrange, probe and emit"
    assert len(watch.collected) == 3 and max(watch.collected) < 10_000, "400,000 bytes of rows went in"
    assert view(flow, "v").total() == 6000
    plan = watch.frames[-1]._jdf.queryExecution().executedPlan().toString()
    assert "Adaptive" not in plan
    session = watch.frames[-1].sparkSession
    assert all(session.conf.get(name) == value for name, value in INTERPRETED.items()), "no code for a few rows"
    assert "codegen" not in plan.lower()
    assert all(flow.spark.conf.get(name) != value for name, value in INTERPRETED.items()), "nor any change to others"


def test_a_three_input_view_is_one_job(flow: rj.Flow) -> None:
    for name in "abc":
        flow.sql(f"CREATE STREAM {name} (k BIGINT, {name} BIGINT)")
    flow.sql("CREATE VIEW v AS SELECT a.k, a, b, c FROM a JOIN b ON a.k = b.k JOIN c ON b.b = c.c")
    for name in "abc":
        flow.insert(name, [{"k": 1, name: 1}])
    flow.run()
    assert len(jobs_of(flow)) == 1 and view(flow, "v") == bag([(1, 1, 1, 1)])


OTHER = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
}


def test_a_session_of_the_users_own(spark: SparkSession, state: str, tmp_path: Path) -> None:
    """Slower, as the warning says, and right all the same; and not one setting is changed."""
    own = spark.newSession()
    for name, value in OTHER.items():
        own.conf.set(name, value)
    settings = dict(own.conf.getAll)
    with pytest.warns(UserWarning, match="this Spark session would be faster with") as warned:
        flow = rj.Flow(state, spark=own, parallelism=3)
    assert all(name in str(warned[0].message) for name in OTHER if name in SETTINGS)
    schema = "id BIGINT, at TIMESTAMP, s STRING, b BINARY, turn INT"
    for turn in range(3):
        rows = own.range(20).selectExpr(
            "id", "timestamp_seconds(id) AS at", "string(id) AS s", "binary(string(id)) AS b", f"{turn} AS turn"
        )
        rows.write.parquet(f"{tmp_path}/in/{turn}")
        stream = own.readStream.schema(schema).parquet(f"{tmp_path}/in/*")
        flow.stream("s", stream)
        flow.sql("CREATE VIEW IF NOT EXISTS v AS SELECT x.id, x.at, x.s, y.b, y.turn FROM s x JOIN s y ON x.at = y.at")
        flow.run()
        if turn == 1:
            with pytest.warns(UserWarning, match="faster"):
                flow = rj.Flow(state, spark=own, parallelism=2)
    own.read.parquet(f"{tmp_path}/in/*").createOrReplaceTempView("s")
    expected = own.sql("SELECT x.id, x.at, x.s, y.b, y.turn FROM s x JOIN s y ON x.at = y.at")
    assert bag(flow.table("v")) == bag(expected)
    assert bag(flow.sql("SELECT * FROM v")) == bag(expected)
    assert dict(own.conf.getAll) == settings


PLAIN_SESSION = """
import os, sys, warnings
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
before = dict(spark.conf.getAll), dict(spark.sparkContext.getConf().getAll())
import rejoinder as rj
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    flow = rj.Flow(sys.argv[1])
assert flow.spark.sparkContext is spark.sparkContext
[message] = [str(each.message) for each in warned if "faster" in str(each.message)]
for setting in ("spark.python.unix.domain.socket.enabled=true", "spark.sql.adaptive.enabled=false",
                "spark.sql.streaming.checkpointFileManagerClass="):
    assert setting in message, message
flow.sql("CREATE STREAM s (id BIGINT); CREATE VIEW v AS SELECT id FROM s")
flow.insert("s", [{"id": 1}])
flow.run()
assert [row.id for row in flow.table("v").collect()] == [1]
assert before == (dict(spark.conf.getAll), dict(spark.sparkContext.getConf().getAll()))
"""


@DEEP
@pytest.mark.slow
def test_a_session_that_is_there_is_taken_as_it_is(state: str) -> None:
    done = subprocess.run([sys.executable, "-c", PLAIN_SESSION, state], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_spool_goes_with_the_process(open_flow: OpenFlow) -> None:
    flow = open_flow()
    assert flow.engine.spool is not None
    folder = flow.engine.spool.folder
    flow.sql("CREATE STREAM s (id BIGINT, x STRING); CREATE VIEW v AS SELECT id FROM s")
    flow.insert("s", [{"id": i, "x": f"{i:0500}"} for i in range(3000)])
    flow.run()
    assert view(flow, "v").total() == 3000
    assert set(os.listdir(folder)) <= {".owner"}, "an epoch leaves nothing behind"

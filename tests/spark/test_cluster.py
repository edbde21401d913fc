"""A two-worker standalone cluster: flows run on it, see a shared state only, and outlive an executor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.cluster import Cluster, run_driver, running

SESSION = """
import json, os, signal, sys, threading, time
import psutil
from pyspark.sql import SparkSession
import rejoinder as rj
from rejoinder.exchange.session.spark_session import SETTINGS

def say(**facts):
    print(json.dumps(facts), flush=True)

builder = SparkSession.builder.master(sys.argv[1]).config("spark.driver.host", "127.0.0.1")
for name, value in {**SETTINGS, "spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.cores.max": "2",
                    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")

def rows(view):
    return sorted(tuple(row) for row in view.collect())

def define(flow):
    flow.sql("CREATE STREAM IF NOT EXISTS a (id BIGINT, x STRING)")
    flow.sql("CREATE TABLE IF NOT EXISTS b (id BIGINT, y BIGINT, PRIMARY KEY (id))")
    flow.sql("CREATE VIEW IF NOT EXISTS v AS SELECT a.id, x, y FROM a JOIN b ON a.id = b.id")
"""

SHARED = """
for turn in range(3):
    flow = rj.Flow("shared", spark=spark, parallelism=2 + turn)
    define(flow)
    flow.insert("a", [{"id": i, "x": f"{turn}" * 100} for i in range(2000)])
    flow.insert("b", [{"id": i, "y": turn} for i in range(turn, 10)])
    flow.run()
say(spool=str(flow.engine.spool), epoch=flow.epoch, rows=[(row[0], row[1][0], row[2]) for row in rows(flow.table("v"))],
    executors=spark._jsc.sc().getExecutorMemoryStatus().size() - 1)

hidden = rj.Flow("/proc/self/cwd/hidden", spark=spark)  # a path that means something else to every process
hidden.sql(f"CREATE STREAM c (id BIGINT) USING json OPTIONS (path '{os.getcwd()}/in')")
hidden.sql("CREATE VIEW w AS SELECT id FROM c")
for turn in range(2):
    try:
        hidden.run()
    except rj.RejoinderError as error:
        say(kind=type(error).__name__, fact=error.fact, detail=error.detail, hint=error.hint, epoch=hidden.epoch)
    if turn == 0:
        define(hidden)
        hidden.insert("a", [{"id": 1, "x": "x"}])
flow.insert("b", [{"id": 0, "y": 7}])
flow.run()
say(zero=[row for row in rows(flow.table("v")) if row[0] == 0 and row[2] == 7] != [])
del flow, hidden
"""

KILLED = """
workers = [psutil.Process(int(pid)) for pid in sys.argv[2].split(",")]

def executors():
    found = [each for worker in workers for each in worker.children(recursive=True)]
    alive = [each for each in found if each.status() != psutil.STATUS_ZOMBIE]
    return [each for each in alive if "CoarseGrainedExecutorBackend" in " ".join(each.cmdline())]

flow = rj.Flow("killed", spark=spark, parallelism=8)
define(flow)
flow.insert("a", [{"id": i, "x": f"{i}"} for i in range(100)])
flow.run()
flow.insert("a", [{"id": i % 5000, "x": f"{i:050}"} for i in range(100_000)])
flow.insert("b", [{"id": i, "y": i} for i in range(5000)])
before, killed = executors(), []

def kill():
    folder = "killed/runs/0000000001"
    while not (os.path.isdir(folder) and os.listdir(folder)):
        time.sleep(0.005)
    killed.append(before[0].pid)
    before[0].kill()

thread = threading.Thread(target=kill)
thread.start()
progress = flow.run()
thread.join()
view = flow.arrow("v")
say(epochs=len(progress), epoch=flow.epoch, killed=len(killed), gone=before[0] not in executors(), rows=view.num_rows,
    total=sum(view.column("y").to_pylist()), written=len(os.listdir("killed/runs/0000000001")),
    named=len([name for name in flow.engine.version.state.files() if "/0000000001/" in name]))
del flow
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the driver works."""
    return tmp_path_factory.mktemp("driver")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all tests of this file."""
    with running(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def told(cluster: Cluster, folder: Path) -> list[dict[str, object]]:
    """What one driver said of all this: the start of another one would take longer than its work."""
    (folder / "in").mkdir()
    (folder / "in" / "1.json").write_text('{"id": 1}\n')
    pids = ",".join(map(str, cluster.workers))
    printed = run_driver(SESSION + SHARED + KILLED, cluster.url, pids, folder=folder)
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.slow
def test_a_flow_on_a_cluster(told: list[dict[str, object]], folder: Path) -> None:
    shared, hidden, unread, again, _ = told
    newest = {0: 0, 1: 1, **dict.fromkeys(range(2, 10), 2)}
    assert shared == {
        "spool": "None",
        "epoch": 2,
        "rows": [[i, f"{turn}", newest[i]] for i in range(10) for turn in range(3)],
        "executors": 2,
    }
    assert hidden["fact"] == "a worker cannot see the state" and hidden["kind"] == "StateError"
    assert hidden["epoch"] == -1 and "/proc/self/cwd/hidden" in str(hidden["detail"])
    assert "shared file system" in str(hidden["hint"])
    assert unread["kind"] == "MissingInput" and "shared file system" in str(unread["hint"])
    assert again == {"zero": True}, "the other flow goes on"
    assert not list((folder / "shared").glob("markers/*"))


@pytest.mark.slow
def test_an_executor_dies_in_the_middle_of_an_epoch(told: list[dict[str, object]]) -> None:
    killed = told[-1]
    assert killed["killed"] == 1 and killed["gone"] is True
    assert killed["epochs"] == 1 and killed["epoch"] == 1
    assert killed["rows"] == 100_100 and killed["total"] == sum(i % 5000 for i in range(100_000)) + sum(range(100))
    written, named = killed["written"], killed["named"]
    assert isinstance(written, int) and isinstance(named, int) and written >= named

"""A flow as an object: closing it, what it shows of itself, its names in Spark, and a state deleted under it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.errors import StateDeleted, StateError
from tests.spark.conftest import OpenFlow

SECONDS = 120
FLOW = "CREATE STREAM s (k INT); CREATE VIEW v AS SELECT COUNT(*) AS n FROM s"
OWN_SESSION = """
import sys
import rejoinder as rj
from pyspark import SparkContext

with rj.Flow(sys.argv[1], parallelism=1) as one:
    one.sql("CREATE STREAM s (k INT)")
    two = rj.Flow(sys.argv[1] + "-two")
    one.close()
    assert SparkContext._active_spark_context is not None, "the other flow uses it"
    two.close()
assert SparkContext._active_spark_context is None
print(repr(two))
"""


def descriptions(spark: SparkSession) -> list[str]:
    """The descriptions of the jobs that Spark has run, as its UI shows them."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(at).description() for at in range(jobs.size())]
    return [str(each.get()) for each in found if each.isDefined()]


def test_a_closed_flow_says_so_and_leaves_the_session_of_the_user(spark: SparkSession, state: str) -> None:
    with rj.Flow(state, spark=spark, parallelism=1) as flow:
        flow.sql(FLOW)
        flow.start()
        assert repr(flow) == f"<Flow {state}: no epoch yet, 1 source, 1 view, running>"
    assert not flow.is_running
    assert repr(flow) == f"<Flow {state}: no epoch yet, 1 source, 1 view, closed>"
    flow.close()
    for act in (flow.run, flow.start, lambda: flow.sql("DROP VIEW v"), flow.__enter__):
        with pytest.raises(StateError, match="the flow is closed"):
            act()
    assert spark.range(1).count() == 1


def test_an_error_in_the_body_is_the_one_that_is_raised(spark: SparkSession, state: str) -> None:
    with pytest.raises(ZeroDivisionError), rj.Flow(state, spark=spark, parallelism=1):
        raise ZeroDivisionError


def test_a_session_of_its_own_is_stopped_with_the_last_flow_on_it(tmp_path: Path) -> None:
    place = str(tmp_path / "state")
    done = subprocess.run(
        [sys.executable, "-c", OWN_SESSION, place], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"<Flow {place}-two: no epoch yet, 0 sources, 0 views, closed>\n"


def test_queries_and_jobs_have_the_name_of_the_flow(spark: SparkSession, open_flow: OpenFlow, tmp_path: Path) -> None:
    flow = open_flow()
    flow.sql("CREATE STREAM s (k INT); CREATE VIEW v AS SELECT k FROM s")
    flow.insert("s", [{"k": 1}])
    spark.sparkContext.setJobDescription("my own")
    flow.run()
    assert "rejoinder state epoch 0" in descriptions(spark)
    flow.sql("CREATE VIEW w AS SELECT k, COUNT(*) AS n FROM s GROUP BY k")
    assert "rejoinder state existing rows at epoch 0" in descriptions(spark)
    assert spark.sparkContext.getLocalProperty("spark.job.description") == "my own"
    spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    flow.start()
    other = rj.Flow(tmp_path / "elsewhere" / "state", spark=spark, parallelism=1)
    other.sql(FLOW)
    other.start()
    names = sorted(str(query.name) for query in spark.streams.active)
    other.stop()
    flow.stop()
    assert names == ["rejoinder state", "rejoinder state (2)"]


@pytest.mark.parametrize("is_running", [True, False])
def test_a_state_that_is_deleted_under_a_flow_is_called_that(flow: rj.Flow, state: str, is_running: bool) -> None:
    flow.sql(FLOW)
    flow.insert("s", [{"k": 1}])
    flow.run()
    if is_running:
        committed = threading.Event()
        flow.on_progress(lambda progress: committed.set())
        flow.insert("s", [{"k": 2}])
        flow.start()
        assert committed.wait(SECONDS)
    while os.path.exists(state):  # a running query may write while its folder is being deleted
        shutil.rmtree(state, ignore_errors=True)
    if is_running:
        flow.insert("s", [{"k": 3}])
    with pytest.raises(StateDeleted, match="the state was deleted while the flow was using it") as raised:
        flow.wait(SECONDS) if is_running else flow.run()
    flow.close()  # does not raise it again
    assert raised.value.hint is not None and "restore it from a backup" in raised.value.hint

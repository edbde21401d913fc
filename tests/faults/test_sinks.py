"""A process dies around a delivery, for real: sinks that store epochs have each epoch once, any other at least once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.testing import Driver
from tests.deep import DEEP
from tests.faults import sink_victim
from tests.faults.test_points import IN_SINKS
from tests.spark.postgres import Postgres

SCRIPT = Path(sink_victim.__file__)
SECRET = "geheim-4711"
SINKS = ("jdbc", "jdbc_log", "delta", "delta_log", "parquet")
FAULTS = [
    pytest.param(f"{point}:{epoch}", marks=DEEP if epoch == number % 2 else ())
    for number, point in enumerate(IN_SINKS)
    for epoch in (0, 1)
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A database that runs; it is taken away in the end."""
    server = Postgres(SECRET)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def folder(tmp_path: Path, postgres: Postgres, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the input of all epochs, and an empty table."""
    sink_victim.write_input(tmp_path)
    for table, columns in sink_victim.TABLES.items():
        postgres.sql(f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} ({columns})")
    monkeypatch.setenv("RJ_TEST_PASSWORD", SECRET)
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "1")
    return tmp_path


def die(fault: str, folder: Path, *arguments: str) -> None:
    """Run the flow in a process of its own that dies at a point."""
    died = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *arguments],
        env={**os.environ, "REJOINDER_FAULT": fault, "TMPDIR": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL, died.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_a_process_dies(tmp_path: Path, fault: str) -> None:
    """Files have each epoch once, and so has the function, which is called after them."""
    sink_victim.write_input(tmp_path)
    die(fault, tmp_path)
    assert Driver(store=tmp_path / "state").epoch == int(fault[-1]), "the epoch is committed"
    driver = sink_victim.step(tmp_path)
    driver.step()
    view = Counter(tuple(row.values()) for row in driver.table("v"))
    assert all(summed(in_files(tmp_path, kind)) == view for kind in sink_victim.FILES)
    assert (tmp_path / "noted").read_text().split() == ["0", "1", "2"]


@DEEP
@pytest.mark.slow
def test_a_driver_on_spark_dies(spark: SparkSession, folder: Path, postgres: Postgres) -> None:
    """The first sink is in the middle of it, the others have nothing."""
    die("in_delivery:0", folder, postgres.url, *SINKS)
    flow = rj.Flow(folder / "state", spark=spark, parallelism=2)
    assert flow.epoch == 0
    sink_victim.run(flow, folder, postgres.url, SINKS)
    check(flow, folder, postgres)
    assert (folder / "noted").read_text().split() == ["0", "1", "2"]


def test_sparks_last_commit_is_lost(spark: SparkSession, folder: Path, postgres: Postgres) -> None:
    """Spark plans an epoch again that is committed and delivered."""
    sink_victim.run(rj.Flow(folder / "state", spark=spark, parallelism=2), folder, postgres.url, SINKS)
    commits = list((folder / "state" / "spark").rglob(f"commits/{sink_victim.EPOCHS - 1}"))
    assert commits
    for commit in commits:
        commit.unlink()
    shutil.rmtree(folder / "state" / "sinks")  # as if the process had died before it was written
    flow = rj.Flow(folder / "state", spark=spark, parallelism=2)
    sink_victim.run(flow, folder, postgres.url, SINKS)
    check(flow, folder, postgres)
    noted = [int(line) for line in (folder / "noted").read_text().split()]
    assert sorted(set(noted)) == [0, 1, 2] and noted[:3] == [0, 1, 2], "a function may be called again, with the epoch"


def check(flow: rj.Flow, folder: Path, postgres: Postgres) -> None:
    """Tables equal the view; files hold each epoch's changes once and add up to it."""
    view = Counter((row.id, row.x, row.n) for row in flow.table("v").collect())
    assert len(view) > 5
    assert Counter(tuple(map(int, row)) for row in postgres.sql("SELECT id, x, n FROM v")) == view
    assert summed(tuple(map(int, row)) for row in postgres.sql("SELECT id, x, n, _diff FROM v_log")) == view
    delta, log = (flow.spark.read.format("delta").load(str(folder / name)) for name in ("delta", "delta_log"))
    assert Counter((row.id, row.x, row.n) for row in delta.collect()) == view
    assert summed((row.id, row.x, row.n, row["_diff"]) for row in log.collect()) == view
    assert summed(in_files(folder, "parquet")) == view


def in_files(folder: Path, kind: str) -> Iterator[tuple[int, ...]]:
    """The changes in the files, with their diffs."""
    read = {"parquet": pq.read_table, "csv": pacsv.read_csv, "json": pajson.read_json}[kind]
    for path in sorted((folder / kind).glob(f"*.{kind}")):
        yield from ((row["id"], row["x"], row["n"], row["_diff"]) for row in read(path).to_pylist())


def summed(changes: Iterable[tuple[int, ...]]) -> Counter[tuple[int, ...]]:
    """What changes add up to."""
    counts: Counter[tuple[int, ...]] = Counter()
    for *row, diff in changes:
        assert diff in (-1, 1)
        counts[tuple(row)] += diff
    assert min(counts.values()) == 0, "some rows have come and gone"
    return +counts

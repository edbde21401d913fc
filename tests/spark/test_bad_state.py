"""Damaged, newer, moved and full: the error names the damage, and nothing is committed on top of it."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.errors import Corrupt, NewerFormat, StorageFailed
from rejoinder.ir.identities import SourceRows
from tests.spark.conftest import OpenFlow
from tests.spark.rows import bag, summed, view


def fill(flow: rj.Flow, epochs: int = 2) -> None:
    """A join with some epochs; half of the rows of `a` have no match yet."""
    flow.sql("CREATE CHANGELOG a (id BIGINT, x STRING); CREATE TABLE b (id BIGINT, y STRING, PRIMARY KEY (id))")
    flow.sql("CREATE VIEW v AS SELECT a.id, x, y FROM a JOIN b ON a.id = b.id")
    for number in range(epochs):
        flow.insert("a", [{"id": i, "x": f"x{number}"} for i in range(40)])
        flow.insert("b", [{"id": i, "y": f"y{number}"} for i in range(20)])
        flow.run()


def seen_anew(spark: SparkSession, state: str, tmp_path: Path) -> rj.Flow:
    """The same state under another name: workers have none of its files open."""
    link = tmp_path / f"link{len(list(tmp_path.iterdir()))}"
    link.symlink_to(state)
    return rj.Flow(link, spark=spark, parallelism=2)


def flip(path: Path) -> None:
    """Flip a bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    """Lose the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_state_that_was_moved_goes_on(
    spark: SparkSession, open_flow: OpenFlow, state: str, tmp_path: Path, epochs: int
) -> None:
    flow = open_flow()
    fill(flow, epochs)
    rows = view(flow, "v")
    moved = tmp_path / "elsewhere"
    shutil.move(state, moved)
    flow = rj.Flow(moved, spark=spark, parallelism=2)
    assert flow.run() == [] and view(flow, "v") == rows
    flow.insert("b", [{"id": 30, "y": "new"}])
    flow.run()
    assert flow.epoch == epochs and view(flow, "v") == rows + bag([(30, f"x{i}", "new") for i in range(epochs)])


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink])
def test_a_damaged_run(spark: SparkSession, open_flow: OpenFlow, state: str, tmp_path: Path, damage: object) -> None:
    flow = open_flow()
    fill(flow)
    rows = view(flow, "v")
    name = next(a.id for a in flow.engine.dataflow.arrangements if a.relation == SourceRows("a"))
    files = {ref.name for part in flow.engine.version.state.arrangements[name] for ref in part.refs}
    whole = {file: Path(state, file).read_bytes() for file in files}
    for file in files:
        damage(Path(state, file))  # type: ignore[operator]
    flow = seen_anew(spark, state, tmp_path)
    flow.insert("b", [{"id": 30, "y": "new"}])
    with pytest.raises(Corrupt) as raised:
        flow.run()
    assert any(file in str(raised.value) for file in files) and "restore" in (raised.value.hint or "")
    assert flow.epoch == 1 and view(flow, "v") == rows == bag(flow.table("v"))
    for file, data in whole.items():
        Path(state, file).write_bytes(data)
    flow.run()
    assert flow.epoch == 2 and view(flow, "v").total() == rows.total() + 2
    assert summed(flow.sql("SELECT STREAM * FROM v").collect()) == view(flow, "v")


def test_a_damaged_changelog(spark: SparkSession, open_flow: OpenFlow, state: str, tmp_path: Path) -> None:
    """A reader gets an error; the flow itself does not read rows of a view."""
    flow = open_flow()
    fill(flow)
    files = {ref.name for part in flow.engine.version.state.changelogs["v"] for ref in part.refs}
    whole = {file: Path(state, file).read_bytes() for file in files}
    for file in files:
        flip(Path(state, file))
    flow = seen_anew(spark, state, tmp_path)
    with pytest.raises(Corrupt):
        flow.arrow("v")
    with pytest.raises(Exception, match=r"RJ402.*Detail|RJ402"):
        flow.table("v").collect()
    flow.insert("b", [{"id": 30, "y": "new"}])
    flow.run()
    for file, data in whole.items():
        Path(state, file).write_bytes(data)
    assert flow.epoch == 2 and seen_anew(spark, state, tmp_path).table("v").count() == 42


@pytest.mark.parametrize("damage", [flip, cut])
def test_a_damaged_manifest(open_flow: OpenFlow, state: str, damage: object) -> None:
    flow = open_flow()
    fill(flow)
    manifest = max(Path(state, "manifests").glob("*.json"))
    whole = manifest.read_bytes()
    damage(manifest)  # type: ignore[operator]
    with pytest.raises(Corrupt) as raised:
        open_flow()
    assert manifest.name in str(raised.value) and raised.value.hint
    manifest.write_bytes(whole)
    Path(state, "manifests", "latest").write_text("nonsense")
    flow = open_flow()
    flow.insert("b", [{"id": 30, "y": "new"}])
    flow.run()
    assert flow.epoch == 2


def test_a_state_of_a_newer_version(open_flow: OpenFlow, state: str) -> None:
    fill(open_flow())
    manifest = max(Path(state, "manifests").glob("*.json"))
    whole = manifest.read_bytes()
    newer = {**json.loads(whole.splitlines()[0]), "format": 99, "unheard_of": True}
    manifest.write_text(json.dumps(newer) + "\nchecked in another way\n")
    before = {path: path.read_bytes() for path in Path(state).rglob("*") if path.is_file()}
    with pytest.raises(NewerFormat, match=r"newer version[\s\S]*format 99[\s\S]*Hint: upgrade"):
        open_flow()
    assert {path: path.read_bytes() for path in Path(state).rglob("*") if path.is_file()} == before
    manifest.write_bytes(whole)
    assert open_flow().run() == []


@contextmanager
def files_limited(spark: SparkSession, size: int) -> Iterator[None]:
    """Let no worker write a file of more than `size` bytes, as on a disk that is full."""
    jvm = psutil.Process(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    workers = [each.pid for each in jvm.children(recursive=True)]
    assert workers
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    for worker in workers:
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        for worker in jvm.children(recursive=True):
            with suppress(ProcessLookupError):  # one that ended by itself meanwhile
                resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (hard, hard))


@pytest.mark.parametrize("size", [64, 50_000])
def test_a_full_disk(spark: SparkSession, open_flow: OpenFlow, state: str, size: int) -> None:
    flow = open_flow()
    fill(flow)
    rows = view(flow, "v")
    flow.insert("a", [{"id": i, "x": f"{i:0100}"} for i in range(5000)])
    with files_limited(spark, size), pytest.raises(StorageFailed) as raised:
        flow.run()
    assert raised.value.fact == "no space left for the state" and raised.value.detail
    assert "free space" in (raised.value.hint or "")
    assert flow.epoch == 1 and view(flow, "v") == rows == bag(flow.table("v"))
    flow.run()
    assert flow.epoch == 2 and view(flow, "v").total() == rows.total() + 20
    named = flow.engine.version.state.files()
    assert all(Path(state, name).exists() for name in named)

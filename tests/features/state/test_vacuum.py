"""Vacuum deletes files that no manifest names, in the store and beside it, also while a flow runs."""

from __future__ import annotations

import os
import tempfile
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rejoinder import errors
from rejoinder.engine.executors.spark_executor import make_marker
from rejoinder.ir.streams import Generation
from rejoinder.state.inbox_names import inbox_name
from rejoinder.testing import Driver

AT_ONCE = timedelta(seconds=-5)


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


def opened(place: str | Path) -> Driver:
    driver = Driver(store=place)
    if driver.epoch < 0:
        driver.sql("CREATE TABLE t (a BIGINT, b BIGINT, PRIMARY KEY (a))")
        driver.sql("CREATE VIEW v AS SELECT x.a, y.b FROM t x JOIN t y ON x.a = y.a")
    return driver


def step(driver: Driver, value: int) -> None:
    driver.insert("t", {"a": value, "b": value})
    driver.step()


def values(driver: Driver) -> list[int]:
    return sorted(row["a"] for row in driver.table("v"))


def crash(driver: Driver, value: int) -> None:
    """Run an epoch that dies before its commit: no manifest names its files."""

    def die(*_: Any) -> None:
        raise InterruptedError

    driver._engine.publisher.publish = die  # type: ignore[method-assign,assignment]
    with pytest.raises(InterruptedError):
        step(driver, value)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_files_of_an_attempt_that_was_killed(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "state" if kind == "disk" else f"memory://{uuid.uuid4().hex}"
    driver = opened(place)
    step(driver, 0)
    crash(driver, 1)
    driver = opened(place)
    before = set(driver._store.list())
    assert driver.vacuum().garbage == (), "it may be an attempt under way"
    found = driver.vacuum(dry_run=True, older_than=AT_ONCE)
    assert found.garbage and found.bytes > 0 and set(driver._store.list()) == before
    assert set(found.by_kind()) == {"orphaned files"}
    assert driver.vacuum(older_than=AT_ONCE).garbage == found.garbage
    assert before - set(driver._store.list()) == {each.name for each in found.garbage}
    assert driver.vacuum(older_than=AT_ONCE).garbage == ()
    step(driver, 1)
    step(driver, 2)
    assert values(driver) == values(opened(place)) == [0, 1, 2]


def test_files_of_a_killed_attempt_go_once_its_epoch_is_past(tmp_path: Path) -> None:
    driver = opened(tmp_path / "state")
    crash(driver, 0)
    driver = opened(tmp_path / "state")
    for value in range(3):
        step(driver, value)
    assert driver.vacuum().garbage
    assert values(driver) == values(opened(tmp_path / "state")) == [0, 1, 2]


def test_it_runs_beside_epochs_and_definitions(tmp_path: Path) -> None:
    driver = opened(tmp_path / "state")
    executor = driver._engine.executor
    run, listed = executor.run, executor.run_listed

    def vacuumed(reports: Any) -> Any:
        """Files are written and not committed: an older epoch's are not ours."""
        Driver(store=tmp_path / "state").vacuum()
        return reports

    executor.run = lambda work, splits: vacuumed(run(work, splits))  # type: ignore[method-assign]
    executor.run_listed = lambda work, splits: vacuumed(listed(work, splits))  # type: ignore[method-assign]
    for value in range(25):
        step(driver, value)
        if value == 12:
            driver.sql("CREATE VIEW w AS SELECT COUNT(*) AS n FROM t")
    assert values(driver) == values(opened(tmp_path / "state")) == list(range(25))
    assert [row["n"] for row in driver.table("w")] == [25]


def test_generations_of_sparks_checkpoint(tmp_path: Path) -> None:
    driver = opened(tmp_path / "state")
    step(driver, 0)
    driver._engine.begin_generation(Generation(5, "5-aaaaaaaa", ()), {}, {}, commit=True)
    spark = tmp_path / "state" / "spark"
    for name in ("2-00000000", "3-00000000", "4-00000000", "5-aaaaaaaa", "5-bbbbbbbb", "6-00000000", "1-mine", "notes"):
        (spark / name / "offsets").mkdir(parents=True)
        (spark / name / "offsets" / "0").write_text("v1")
    os.utime(spark / "5-bbbbbbbb", (1, 1))
    done = driver.vacuum()
    assert done.by_kind() == {"generations of Spark's checkpoint": (3, 6)}
    assert sorted(path.name for path in spark.iterdir()) == [
        "1-mine",
        "4-00000000",
        "5-aaaaaaaa",
        "6-00000000",
        "notes",
    ]


def test_ticks_and_rows_of_dropped_sources(tmp_path: Path) -> None:
    driver = opened(tmp_path / "state")
    step(driver, 0)
    ticks, inbox = tmp_path / "state" / "ticks", tmp_path / "state" / "inbox"
    ticks.mkdir()
    for age, name in enumerate(("a" * 16, "b" * 16, "c" * 16)):
        (ticks / f"{name}.tick").touch()
        os.utime(ticks / f"{name}.tick", (100 - age, 100 - age))
    identity = driver._engine.version.attached["t"]
    mine, gone = (inbox / inbox_name("t", each) for each in (identity, "that of a source that was dropped"))
    for folder in (mine, gone):
        folder.mkdir(parents=True)
        (folder / f"{1:020d}-00000000.arrow").write_bytes(b"rows")
    assert [Path(each.name).name for each in driver.vacuum().garbage] == ["c" * 16 + ".tick", "b" * 16 + ".tick"]
    os.utime(gone, (1, 1))
    assert driver.vacuum().by_kind() == {"rows of dropped sources": (1, 4)}
    assert (mine / f"{1:020d}-00000000.arrow").exists(), "nobody has read it"


def test_temporary_files_and_links(tmp_path: Path) -> None:
    driver = opened(tmp_path / "state")
    step(driver, 0)
    temporary = tmp_path / "state" / ".temporary"
    (temporary / f"77-{'0' * 16}").write_bytes(b"1234567")
    os.utime(temporary / f"77-{'0' * 16}", (1, 1))
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / f"{'a' * 16}.tick").touch()
    (tmp_path / "state" / "ticks").symlink_to(tmp_path / "precious")
    assert driver.vacuum().by_kind() == {"temporary files": (1, 7)}
    assert (tmp_path / "precious" / f"{'a' * 16}.tick").exists()


def test_a_state_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert Driver(store=tmp_path / "none").vacuum().garbage == ()
    assert not (tmp_path / "none").exists()


def test_lost_manifests_are_not_garbage(tmp_path: Path) -> None:
    driver = opened(tmp_path / "state")
    step(driver, 0)
    driver._store.delete(driver._store.list("manifests"))
    with pytest.raises(errors.Corrupt, match="manifests of this state are missing"):
        driver.vacuum(older_than=AT_ONCE)


def test_markers_of_killed_drivers_of_a_cluster(tmp_path: Path) -> None:
    killed = opened(tmp_path / "state")
    step(killed, 0)
    driver = opened(tmp_path / "state")
    step(driver, 1)
    store, writers = driver._store, [each._engine.publisher.writer for each in (killed, driver)]
    old, own = (make_marker(store, store, writer) for writer in writers)
    young = make_marker(store, store, "0" * 16)
    store.put("markers/mine", b"")
    for name in (old, own, "markers/mine"):
        os.utime(tmp_path / "state" / name, (1, 1))
    assert driver.vacuum().by_kind() == {"markers of killed drivers": (1, 0)}
    assert sorted(store.list("markers")) == sorted([own, young, "markers/mine"])


def test_queries_of_killed_processes_on_a_cluster(tmp_path: Path) -> None:
    driver = opened(tmp_path / "state")
    step(driver, 0)
    queries = tmp_path / "state" / "queries"
    for name in ("a" * 16, "b" * 16, "mine"):
        (queries / name / "runs").mkdir(parents=True)
        (queries / name / "runs" / "file").write_bytes(b"rows")
        for path in (queries / name / "runs" / "file", queries / name / "runs", queries / name):
            os.utime(path, (1, 1))
    os.utime(queries / ("b" * 16) / "runs" / "file")
    assert driver.vacuum().by_kind() == {"queries that were killed": (1, 4)}
    assert sorted(path.name for path in queries.iterdir()) == ["b" * 16, "mine"]
    step(opened(tmp_path / "state"), 1)

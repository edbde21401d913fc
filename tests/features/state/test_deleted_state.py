"""A state that is deleted while it is used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rejoinder.engine.collector import KEEP_VERSIONS
from rejoinder.errors import Corrupt, Fenced, StateDeleted, StateError
from rejoinder.store.commits import file_log
from rejoinder.store.commits.commit import commit
from rejoinder.store.objects.local_objects import Disk
from rejoinder.store.runs.run import drop_open_runs
from rejoinder.testing import Driver


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """A flow on disk after one epoch."""
    driver = Driver(store=tmp_path / "state")
    driver.sql("CREATE STREAM s (k INT); CREATE VIEW v AS SELECT k, COUNT(*) AS n FROM s GROUP BY k")
    driver.insert("s", {"k": 1})
    driver.step()
    return driver


def test_the_next_epoch_or_definition_says_so(driver: Driver, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "state")
    for act in (driver.step, lambda: driver.sql("DROP VIEW v")):
        driver.insert("s", {"k": 1})
        with pytest.raises(StateDeleted) as raised:
            act()
        assert raised.value.fact == "the state was deleted while the flow was using it"
        assert raised.value.detail == f"epoch 0 was committed, and no commit is left in file://{tmp_path}/state"
    assert not list((tmp_path / "state").rglob("*.json")), "nothing is committed on top of a deleted state"


def test_a_single_missing_file_is_damage_and_not_a_deletion(driver: Driver, tmp_path: Path) -> None:
    for run in (tmp_path / "state" / "runs").rglob("*"):
        if run.is_file():
            run.unlink()
    driver.restart()
    with pytest.raises(Corrupt):
        driver.sql("SELECT * FROM v")


def test_a_driver_whose_files_another_one_collected_is_fenced_without_a_report_of_damage(driver: Driver) -> None:
    other = Driver(store=driver._store.path)
    for _ in range(KEEP_VERSIONS + 2):
        other.insert("s", {"k": 1})
        other.step()
    for ref in (ref for parts in driver._engine.version.state.parts.values() for part in parts for ref in part.refs):
        driver._store.delete([ref.name])  # whichever the other one has not merged away yet
    drop_open_runs(driver._store)
    driver.insert("s", {"k": 1})
    with pytest.raises(Fenced, match="another driver has taken over this state"):
        driver.step()


def test_a_driver_whose_log_of_files_another_one_collected_is_fenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_log, "RECENT", 1)
    folder = tmp_path / "in"
    folder.mkdir()

    def opened() -> Driver:
        driver = Driver(store=tmp_path / "state")
        driver.sql(
            f"CREATE STREAM IF NOT EXISTS t (a BIGINT) USING csv OPTIONS (path '{folder}');"
            "CREATE VIEW IF NOT EXISTS v AS SELECT a FROM t"
        )
        return driver

    def read(driver: Driver, count: int) -> None:
        for _ in range(count):
            (folder / f"{len(list(folder.iterdir()))}.csv").write_text("1\n")
            driver.step()

    first = opened()
    read(first, 3)
    read(opened(), KEEP_VERSIONS + 4)
    with pytest.raises(Fenced, match="another driver has taken over this state"):
        first.step()


def test_an_empty_listing_alone_is_no_deletion(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in (Path(driver._store.path) / "runs").rglob("*.arrow"):
        run.unlink()
    drop_open_runs(driver._store)
    monkeypatch.setattr(Disk, "entries", lambda *_: [])
    driver.insert("s", {"k": 1})
    with pytest.raises(Corrupt, match="is missing"):
        driver.step()


def test_a_state_of_another_version_is_called_that(driver: Driver) -> None:
    manifest = driver._engine.version.manifest
    assert manifest is not None
    extra = {name: value for name, value in manifest.extra.items() if name != "watermarks"}
    commit(driver._store, manifest.successor(keep_versions=8, extra=extra))
    with pytest.raises(StateError, match="the state was written by another version of Rejoinder"):
        driver.restart()

"""A driver and the lost answers of its commits: nothing is committed twice, and no driver is fenced by itself."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from rejoinder import errors
from rejoinder.engine.version import Version
from rejoinder.store.commits.manifest import versions
from rejoinder.testing import Driver
from tests.unreliable_store import Line, unreliable


@pytest.fixture(params=["memory", "disk"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://{uuid.uuid4().hex}" if request.param == "memory" else str(tmp_path / "state")


def opened(place: str) -> tuple[Driver, Line]:
    driver = Driver(store=place)
    line = unreliable(driver._store)
    if driver.epoch < 0:
        driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
        driver.insert("t", {"a": 0})
        driver.step()
    return driver, line


def next_name(driver: Driver) -> str:
    manifest = driver._engine.version.manifest
    assert manifest is not None
    return f"manifests/{manifest.version + 1:020d}.json"


def values(driver: Driver) -> list[int]:
    return sorted(row["a"] for row in driver.table("v"))


@pytest.mark.parametrize("fate", ["lost", "late", "failed"])
def test_a_commit_whose_answer_is_lost_happens_once(place: str, fate: str) -> None:
    driver, line = opened(place)
    line.next(next_name(driver), fate)
    driver.insert("t", {"a": 1})
    with pytest.raises(errors.Unconfirmed):
        driver.step()
    driver.insert("t", {"a": 2})
    driver.step()
    line.arrive()
    driver.insert("t", {"a": 3})
    driver.step()
    assert values(driver) == values(Driver(store=place)) == [0, 1, 2, 3]
    assert driver.epoch == 3


def test_a_definition_whose_answer_is_lost_happens_once(place: str) -> None:
    driver, line = opened(place)
    line.next(next_name(driver), "lost")
    with pytest.raises(errors.Unconfirmed):
        driver.sql("CREATE VIEW w AS SELECT a + 1 AS b FROM t")
    with pytest.raises(errors.DefinitionConflict):
        driver.sql("CREATE VIEW w AS SELECT a + 2 AS b FROM t")
    assert [row["b"] for row in driver.table("w")] == [1]


FIRST = "manifests/00000000000000000000.json"


@pytest.mark.parametrize("probe", ["lost", "late", "failed"])
@pytest.mark.parametrize("fate", ["answered", "refused", "twice"])
def test_a_first_commit_whose_probe_fails_is_recognised(place: str, fate: str, probe: str) -> None:
    """The first commit of a flow is put twice: the storage must refuse the second. That request may fail as well."""
    driver = Driver(store=place)
    line = unreliable(driver._store)
    line.next(FIRST, fate)
    line.next(FIRST, probe)
    with pytest.raises(errors.Unconfirmed):
        driver.sql("CREATE STREAM t (a BIGINT)")
    driver.sql("CREATE VIEW v AS SELECT a FROM t")
    driver.insert("t", {"a": 1})
    driver.step()
    line.arrive()
    driver.insert("t", {"a": 2})
    driver.step()
    assert values(driver) == values(Driver(store=place)) == [1, 2]


def test_a_first_commit_whose_flow_marker_is_lost_is_recognised(place: str) -> None:
    driver = Driver(store=place)
    line = unreliable(driver._store)
    line.next(FIRST, "lost")
    for _ in range(2):
        line.next("flow.json", "lost")
    with pytest.raises(errors.Unconfirmed):
        driver.sql("CREATE STREAM t (a BIGINT)")
    driver.sql("CREATE VIEW v AS SELECT a FROM t")
    driver.insert("t", {"a": 1})
    driver.step()
    assert values(driver) == values(Driver(store=place)) == [1]


def test_a_storage_that_stays_away_is_said_again(place: str) -> None:
    driver, line = opened(place)
    name = next_name(driver)
    for _ in range(3):
        line.next(name, "failed")
    driver.insert("t", {"a": 1})
    for _ in range(3):
        with pytest.raises(errors.Unconfirmed):
            driver.step()
    driver.step()
    assert values(driver) == [0, 1]


def test_a_failure_before_the_commit_keeps_the_rows(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, _ = opened(place)

    def fail(*_: object) -> None:
        raise errors.StorageFailed("no space left")

    monkeypatch.setattr(driver._engine.executor, "run", fail)
    driver.insert("t", {"a": 1})
    with pytest.raises(errors.StorageFailed):
        driver.step()
    monkeypatch.undo()
    driver.step()
    assert values(driver) == [0, 1]


def test_a_driver_that_was_replaced_while_its_answer_was_lost_is_fenced(place: str) -> None:
    driver, line = opened(place)
    line.next(next_name(driver), "late")
    driver.insert("t", {"a": 1})
    with pytest.raises(errors.Unconfirmed):
        driver.step()
    other = Driver(store=place)
    other.insert("t", {"a": 2})
    other.step()
    line.arrive()
    with pytest.raises(errors.Fenced):
        driver.step()
    assert values(other) == [0, 2] == values(Driver(store=place))


def test_only_a_driver_that_commits_takes_over(place: str) -> None:
    driver, _ = opened(place)
    before = versions(driver._store)
    reader = Driver(store=place)
    assert values(reader) == [0] and versions(driver._store) == before
    reader._engine.claim()
    reader._engine.claim()
    assert versions(driver._store)[-1] == before[-1] + 1
    with pytest.raises(errors.Fenced, match="our last commit was version"):
        driver._engine.claim()


def test_a_recovery_that_fails_leaves_the_engine_as_it_was(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a manifest and a state that do not belong together could be committed."""
    driver, _ = opened(place)
    other = Driver(store=place)
    other.insert("t", {"a": 1})
    other.step()
    engine, before = driver._engine, driver._engine.version.manifest

    def fail(*_: object) -> None:
        raise errors.StorageFailed("the storage of the state failed")

    with monkeypatch.context() as patch:
        patch.setattr(Version, "read", fail)
        with pytest.raises(errors.StorageFailed):
            engine.recover()
    assert engine.version.manifest is before and engine.epoch == 0
    engine.recover()
    assert engine.epoch == 1 and values(driver) == [0, 1]

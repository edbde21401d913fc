"""Files of old versions that cannot be deleted after a commit: the commit stands, and a later one deletes them."""

from __future__ import annotations

import errno
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from rejoinder.engine.collector import KEEP_VERSIONS
from rejoinder.errors import StateDeleted
from rejoinder.store.commits.manifest import versions
from rejoinder.testing import Driver
from tests.unreliable_store import Line, unreliable

NOTICE = "files of old versions could not be deleted; the next commit tries again"
STATEMENTS = (
    "CREATE VIEW w AS SELECT a + 1 AS b FROM t",
    "CREATE OR REPLACE VIEW v AS SELECT a + 100 AS a, a AS was FROM t",
    "DROP VIEW v; CREATE VIEW v AS SELECT a + 100 AS a, a AS was FROM t",
    "DROP VIEW u",
    "ALTER VIEW v SET OPTIONS (max_state_rows '1000')",
    "DROP STREAM t CASCADE; CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a + 7 AS a FROM t",
    "CREATE INDEX i ON v (a)",
)


class Stuck(Line):
    """A backend that deletes nothing while `is_stuck`."""

    is_stuck = True

    def delete(self, names: Sequence[str]) -> None:
        if self.is_stuck:
            raise ConnectionResetError(errno.ECONNRESET, "connection reset")
        self._backend.delete(names)


def opened(place: Path) -> tuple[Driver, Stuck]:
    """A flow with so many commits that the next one has something to collect."""
    driver = Driver(store=place)
    driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t; CREATE VIEW u AS SELECT a FROM t")
    for number in range(KEEP_VERSIONS + 1):
        step(driver, number)
    line = unreliable(driver._store)
    line.__class__ = Stuck
    assert isinstance(line, Stuck)
    return driver, line


def step(driver: Driver, number: int) -> None:
    driver.insert("t", {"a": number})
    driver.step()


def contents(driver: Driver) -> dict[str, list[str]]:
    return {view.name: sorted(map(str, driver.table(view.name))) for view in driver.catalog.views}


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_definition_stands_though_nothing_can_be_deleted(tmp_path: Path, text: str) -> None:
    plain, _ = opened(tmp_path / "plain")
    plain._store._opened = None
    driver, line = opened(tmp_path / "stuck")
    plain.sql(text)
    before = len(versions(driver._store))
    with pytest.warns(UserWarning, match=NOTICE):
        driver.sql(text)
    with pytest.warns(UserWarning, match=NOTICE):
        step(driver, 50)
    assert len(versions(driver._store)) == before + 2
    step(plain, 50)
    line.is_stuck = False
    for each in (driver, plain):
        step(each, 51)
    assert contents(driver) == contents(plain) == contents(Driver(store=tmp_path / "stuck"))
    assert len(versions(driver._store)) == KEEP_VERSIONS
    version, again = driver._engine.version, Driver(store=tmp_path / "stuck")._engine.version
    for field in ("state", "attached", "created", "watermarks", "deliveries"):
        assert getattr(version, field) == getattr(again, field)


def test_an_epoch_stands_though_nothing_can_be_deleted(tmp_path: Path) -> None:
    driver, line = opened(tmp_path)
    with pytest.warns(UserWarning, match=NOTICE):
        step(driver, 50)
    line.is_stuck = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(driver, 51)
    assert [row["a"] for row in driver.table("v")][-2:] == [50, 51]
    assert driver._engine.progress[-1].notices == () and NOTICE in driver._engine.progress[-2].notices[0]


def test_a_state_that_was_deleted_is_reported_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, _ = opened(tmp_path)
    commit = driver._engine._commit

    def commit_and_delete(*given: object, **options: object) -> None:
        commit(*given, **options)  # type: ignore[arg-type]
        shutil.rmtree(tmp_path / "manifests")

    monkeypatch.setattr(driver._engine, "_commit", commit_and_delete)
    with pytest.raises(StateDeleted):
        step(driver, 50)

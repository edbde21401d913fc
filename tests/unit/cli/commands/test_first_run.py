"""What a first run that fails leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.cli.commands.first_run import removed_on_failure
from rejoinder.cli.commands.open_state import open_state
from rejoinder.errors import Fenced, InputError
from rejoinder.testing import Driver

FLOW = "CREATE STREAM s (k INT); CREATE VIEW v AS SELECT k FROM s"
UNREADABLE = InputError("a file cannot be read")


def failed_run(place: Path, error: BaseException, *, epochs: int = 0) -> None:
    """A first run that fails after its definitions and some epochs."""
    with removed_on_failure(open_state(str(place), may_create=True)):
        driver = Driver(store=place)
        driver.sql(FLOW)
        for number in range(epochs):
            driver.insert("s", {"k": number})
            driver.step()
        assert place.exists()
        raise error


def test_definitions_alone_are_removed_with_the_folders_that_were_made(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        failed_run(tmp_path / "a" / "state", UNREADABLE)
    assert list(tmp_path.iterdir()) == []


def test_what_was_in_the_folder_before_stays(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("text")
    with pytest.raises(InputError):
        failed_run(tmp_path, UNREADABLE)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Fenced("another driver has taken over this state")])
def test_an_interrupted_or_fenced_run_removes_nothing(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        failed_run(tmp_path / "state", error)
    assert Driver(store=tmp_path / "state").catalog.views


def test_a_committed_epoch_stays(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        failed_run(tmp_path, UNREADABLE, epochs=1)
    assert Driver(store=tmp_path).table("v") == [{"k": 0}]


def test_a_state_that_existed_before_stays(tmp_path: Path) -> None:
    Driver(store=tmp_path).sql(FLOW)
    with pytest.raises(InputError), removed_on_failure(open_state(str(tmp_path))):
        raise UNREADABLE
    assert Driver(store=tmp_path).catalog.views

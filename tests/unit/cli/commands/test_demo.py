"""The demonstration's shop, on the test driver: the same story without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.cli.commands.demo import _prepare, events
from rejoinder.errors import StateError
from rejoinder.testing import Driver


def test_the_story(tmp_path: Path) -> None:
    shop = _prepare(tmp_path / "demo")
    shop.open()
    driver = Driver(parallelism=2)
    driver.sql((tmp_path / "demo" / "shop.sql").read_text(encoding="utf-8"))
    assert all(diff == 1 for _, diff in driver.step()["sales"])
    told = []
    for event in events(shop):
        event.write()
        changes = driver.step()["sales"]
        told.append((sum(diff < 0 for _, diff in changes), sum(diff > 0 for _, diff in changes)))
    assert told[:5] == [(0, 0), (0, 3), (3, 3), (3, 3), (3, 0)]
    assert told[5][0] == 0 and told[5][1] >= 200


def test_it_starts_anew_on_its_own_folder_only(tmp_path: Path) -> None:
    first = _prepare(tmp_path / "demo")
    first.open()
    again = _prepare(tmp_path / "demo")
    assert not list((again.data / "orders").iterdir())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(StateError, match="is not empty"):
        _prepare(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()

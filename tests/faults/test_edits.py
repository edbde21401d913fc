"""A process dies while a view is replaced: the flow has the old definition or the new one, never a mixture."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rejoinder.testing import Driver
from tests.faults import edit_victim
from tests.faults.edit_victim import EDIT, REPLACED

IN_EDITS = ("in_hydration", "in_difference", "after_definition", "before_delivery", "in_delivery", "after_delivery")
BEFORE_COMMIT = ("in_hydration", "in_difference")


@pytest.mark.parametrize("point", IN_EDITS)
def test_the_old_definition_or_the_new_one(tmp_path: Path, point: str) -> None:
    for name in ("killed", "undisturbed"):
        (tmp_path / name).mkdir()
    folder, undisturbed = tmp_path / "killed", edit_victim.start(tmp_path / "undisturbed")
    died = subprocess.run(
        [sys.executable, str(Path(edit_victim.__file__)), str(folder)],
        env={**os.environ, "REJOINDER_FAULT": f"{point}:{REPLACED}", "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    driver = Driver(store=folder / "state", parallelism=3)
    if point in BEFORE_COMMIT:
        assert edit_victim.outcome(driver, folder) == edit_victim.outcome(undisturbed, tmp_path / "undisturbed")
        driver.sql(EDIT)
    assert driver.epoch == REPLACED
    undisturbed.sql(EDIT)
    for each in (driver, undisturbed):
        each.insert("o", {"id": 30, "c": 1, "a": 30}, {"id": 31, "c": 1, "a": 12})
        each.step()
    assert edit_victim.outcome(driver, folder) == edit_victim.outcome(undisturbed, tmp_path / "undisturbed")
    assert all((folder / "state" / name).exists() for name in driver._engine.version.state.files())

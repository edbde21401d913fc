"""`rejoinder vacuum` says what it deletes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.testing import Driver

ORPHAN = f"runs/{0:010d}/{'ab' * 16}.arrow"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    driver = Driver(store=tmp_path / "state")
    driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
    for value in range(3):
        driver.insert("t", {"a": value})
        driver.step()
    driver._store.write(ORPHAN, b"x" * 2048)
    return tmp_path / "state"


def test_a_dry_run_deletes_nothing(state: Path) -> None:
    result = CliRunner().invoke(app, ["vacuum", str(state), "--dry-run"])
    assert result.exit_code == 0, result.output
    assert ORPHAN in result.output and "1 object would be deleted, 2.0 KB" in result.output
    assert (state / ORPHAN).exists()


def test_unnamed_files_are_deleted(state: Path) -> None:
    result = CliRunner().invoke(app, ["vacuum", str(state)])
    assert "orphaned files: 1, 2.0 KB" in result.output and "1 object deleted, 2.0 KB" in result.output
    assert not (state / ORPHAN).exists()
    assert "nothing to delete" in CliRunner().invoke(app, ["vacuum", str(state), "--older-than", "0.5"]).output


def test_there_must_be_a_state(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["vacuum", str(tmp_path / "none")])
    assert result.exit_code == 1 and "there is no state in" in result.output

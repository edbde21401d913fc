"""`rejoinder ui`: what it refuses before it serves anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rejoinder.cli.commands.show_page import page_shown
from rejoinder.cli.main import app


def test_there_must_be_a_state(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["ui", str(tmp_path / "nothing")])
    assert result.exit_code == 1 and "there is no state" in result.output


def test_another_address_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REJOINDER_UI_TOKEN", raising=False)
    result = CliRunner().invoke(app, ["ui", str(tmp_path), "--address", "0.0.0.0"])
    assert result.exit_code == 1 and "readable from other machines" in result.output and "--token" in result.output


def test_without_a_port_nothing_is_served(tmp_path: Path) -> None:
    with page_shown(str(tmp_path), None):
        pass
    assert list(tmp_path.iterdir()) == []

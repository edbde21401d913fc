"""ENRICH calls only functions that the program allowed; a state cannot make it import anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rejoinder.errors import UnknownName, Unsupported
from rejoinder.ir import allowed_functions
from rejoinder.testing import Driver

EVIL = """
import os, pathlib
from shutil import rmtree

pathlib.Path({mark!r}).touch()

def answer(row):
    return None
"""


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that leaves a mark when it is imported; nothing is allowed yet."""
    monkeypatch.setattr(allowed_functions, "_allowed", set())
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "evil_answers", raising=False)
    (tmp_path / "evil_answers.py").write_text(EVIL.format(mark=str(tmp_path / "imported")), encoding="utf-8")
    return tmp_path / "imported"


def _view(function: str) -> str:
    return f"CREATE VIEW v AS SELECT * FROM ENRICH(TABLE t, '{function}', 'n INT')"


def test_a_function_that_is_not_allowed_is_not_even_imported(evil: Path) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (a BIGINT)")
    with pytest.raises(Unsupported, match="function `evil_answers:answer` is not allowed in this process"):
        driver.sql(_view("evil_answers:answer"))
    with pytest.raises(Unsupported, match="not allowed"):
        driver.sql("SELECT * FROM ENRICH(TABLE t, 'evil_answers:answer', 'n INT')")
    assert not evil.exists()


def test_a_state_that_names_another_function_cannot_run_it(
    evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    driver = Driver(store=state, functions=["evil_answers"])
    driver.sql(f"CREATE STREAM t (a BIGINT); {_view('evil_answers:answer')}")
    evil.unlink()
    monkeypatch.delitem(sys.modules, "evil_answers")
    monkeypatch.setattr(allowed_functions, "_allowed", set())  # another program, on the same state
    with pytest.raises(Unsupported, match="not allowed"):
        _step(state)
    assert not evil.exists()


def _step(state: Path) -> None:
    driver = Driver(store=state)
    driver.insert("t", {"a": 1})
    driver.step()


@pytest.mark.parametrize("path", ["os.system", "rmtree", "os.path.exists"])
def test_an_allowed_module_does_not_allow_what_it_imports(evil: Path, path: str) -> None:
    driver = Driver(functions=["evil_answers"])
    driver.sql("CREATE STREAM t (a BIGINT)")
    with pytest.raises(UnknownName, match="belongs to another module"):
        driver.sql(_view(f"evil_answers:{path}"))


@pytest.mark.parametrize("function", ["evil_answers", "evil_answers:answer"])
def test_a_module_or_a_function_is_allowed_by_name(evil: Path, function: str) -> None:
    driver = Driver(functions=[function])
    driver.sql(f"CREATE STREAM t (a BIGINT); {_view('evil_answers:answer')}")
    driver.insert("t", {"a": 1})
    assert driver.step()["v"] == [({"a": 1, "n": None}, 1)]

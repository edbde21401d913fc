"""The build: locks with hashes and without an index, the same versions for all, no test folder without tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted(path.name for path in ROOT.glob("requirements*.lock"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def pins(lock: str) -> dict[str, str]:
    """The requirements of a lock, with their hashes: an entry begins at the left, its other lines are indented."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    entries = re.findall(r"^(\S+==\S+.*(?:\n[ ]+.*)*)", text, re.MULTILINE)
    return {entry.split(" \\")[0].strip(): entry for entry in entries}


def test_locks_of_users_developers_and_the_installer() -> None:
    assert {"requirements.lock", "requirements-dev.lock", "requirements-uv.lock"} <= set(LOCKS)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_hashes_and_names_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text and "--index-url" not in text and "--find-links" not in text
    assert pins(lock) and all("--hash=sha256:" in entry for entry in pins(lock).values())
    at_the_left = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(at_the_left) == len(pins(lock)), "nothing but requirements"


def test_developers_have_the_versions_of_users() -> None:
    assert set(pins("requirements.lock")) < set(pins("requirements-dev.lock"))
    assert not any(name.startswith(("pytest", "mypy", "ruff")) for name in pins("requirements.lock"))


def test_the_demonstration_installs_no_developer_tools() -> None:
    assert re.search(r"^demo: need-java \$\(RUNTIME\) ##", MAKEFILE, re.MULTILINE)


def test_every_folder_has_tests_and_make_test_runs_it() -> None:
    """A folder that is missing, or a run without a test, fails by itself: pytest says so."""
    recipes = dict(re.findall(r"^([\w-]+): .*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE))
    assert all(part in recipes["test"] for part in ("check test-local", "test-spark"))
    run = set(re.findall(r"tests/(\w+)(?=\s)", recipes["test-local"] + recipes["test-spark"]))
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert run == folders
    for folder in folders_of("tests"):
        files = (ROOT / "tests" / folder).rglob("test_*.py")
        assert any(re.search(r"^def test_", path.read_text(encoding="utf-8"), re.MULTILINE) for path in files), folder


def test_unit_tests_mirror_the_packages() -> None:
    assert folders_of("tests/unit") <= folders_of("src/rejoinder")


def folders_of(root: str) -> set[Path]:
    """Folders below `root` with Python files in or below them."""
    files = (path.relative_to(ROOT / root) for path in (ROOT / root).rglob("*.py"))
    return {parent for file in files for parent in file.parents if parent != Path()}

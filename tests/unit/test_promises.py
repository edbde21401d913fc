"""The page of promises names tests and commands that exist, and says for every promise how it is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith(("| promise |", "| run |"))
]
PATHS = sorted(set(re.findall(r"`((?:tests|benchmarks)(?:/[\w./]+)?)`", TEXT)))
TARGETS = sorted(set(re.findall(r"`make ([\w-]+)", TEXT)))


@pytest.mark.parametrize("path", PATHS)
def test_what_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()
    if Path(path).name.startswith("test_"):
        assert re.search(r"^ *def test_", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), "it has tests"


@pytest.mark.parametrize("target", TARGETS)
def test_commands_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_each_promise_is_tested_and_has_a_figure(row: list[str]) -> None:
    assert len(row) == 3 and all(row)
    assert re.search(r"`(tests|benchmarks|make)", row[1])


def test_there_are_promises_and_others_point_to_them() -> None:
    assert len(ROWS) > 30 and len(PATHS) > 50 and len(TARGETS) > 3
    assert "docs/promises.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "promises.md" in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

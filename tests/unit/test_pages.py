"""The examples of the documentation's pages are run, and give what is printed below them."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PAGES)
def test_examples_of_a_page(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    bare = "\n".join("" if line.startswith("```") else line for line in text.splitlines())
    examples = doctest.DocTestParser().get_doctest(bare, {}, name, name, 0)
    results = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(examples)
    assert results.attempted and not results.failed


def test_there_are_pages_to_run() -> None:
    assert {"joins.md", "renderings.md", "sources.md", "windows.md"} <= set(PAGES)

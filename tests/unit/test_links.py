"""Links of the documentation lead to files and headings that exist, and the paths of code that pages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("benchmarks/*.md")]
)
GENERATED = ("benchmarks/data", "benchmarks/out")
PACKAGES = "|".join(
    sorted(path.name for path in (ROOT / "src" / "rejoinder").iterdir() if (path / "__init__.py").exists())
)


def prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub generates for the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The relative links of a page whose file or heading does not exist."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


def missing_paths(page: Path) -> list[str]:
    """The paths of tests, benchmarks, modules and packages (`sql/bind/`) in backquotes that do not exist."""
    text = prose(page)
    outside = re.findall(r"`((?:tests|benchmarks)/[\w./]+)`", text)
    modules = re.findall(rf"`((?:{PACKAGES})/[\w./]+(?:\.py|/))`", text)
    missing = [path for path in outside if not path.startswith(GENERATED) and not (ROOT / path).exists()]
    return missing + [path for path in modules if not (ROOT / "src" / "rejoinder" / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_of_a_page(page: Path) -> None:
    assert missing_paths(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Two words\n[good](#two-words) [bad](#three-words) [gone](no.md) `tests/no.py` `store/no.py`\n",
        encoding="utf-8",
    )
    assert broken_links(page) == ["#three-words", "no.md"]
    assert missing_paths(page) == ["tests/no.py", "store/no.py"]


def test_every_decision_record_follows_the_template() -> None:
    for record in sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")):
        lines = record.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith(f"# {record.name[:4]}: ")
        assert re.match(r"Status: \w+, \d{4}-\d\d-\d\d", lines[2]), record.name
        headings = [line for line in lines if line.startswith("## ")]
        assert headings == ["## Context", "## Decision", "## Consequences"], record.name
        assert f"]({record.name})" in (record.parent / "README.md").read_text(encoding="utf-8")

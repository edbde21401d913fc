"""Links of the documentation lead to files and headings that exist. So do the paths, names and commands on a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("benchmarks/*.md")]
)
SOURCE = ROOT / "src" / "rejoinder"
GENERATED = ("benchmarks/data", "benchmarks/out")
PACKAGES = "|".join(sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()))


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
    return missing + [path for path in modules if not (SOURCE / path).exists()]


def missing_names(page: Path) -> list[str]:
    """The dotted names of modules and of what they define (`sql.bind.binder`) in backquotes that do not exist."""
    names = re.findall(rf"`((?:rejoinder\.)?(?:{PACKAGES})(?:\.\w+)+)`", prose(page))
    return [name for name in names if not name.endswith(".py") and not exists(name.removeprefix("rejoinder."))]


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or a name that a module defines."""
    path, *rest = SOURCE, *name.split(".")
    while rest and (path / rest[0]).is_dir():
        path /= rest.pop(0)
    file = path / f"{rest.pop(0)}.py" if rest and (path / f"{rest[0]}.py").exists() else path / "__init__.py"
    text = file.read_text(encoding="utf-8")
    return all(re.search(rf"\b{part}\b", text) for part in rest)


def missing_commands(page: Path) -> list[str]:
    """The targets of `make` that a page names and the Makefile does not have."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    return sorted(set(re.findall(r"`make ([a-z][\w-]*)", page.read_text(encoding="utf-8"))) - targets)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_names_and_commands_of_a_page(page: Path) -> None:
    assert missing_paths(page) + missing_names(page) + missing_commands(page) == []


def test_the_architecture_lists_the_packages() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = text.split("```")[1]
    assert [package for package in PACKAGES.split("|") if not re.search(rf"\b{package}\b", tree)] == []
    for package, listed in re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE):
        folders = {path.parent.name for path in (SOURCE / package).glob("*/__init__.py")}
        assert folders - set(re.findall(r"`(\w+)`", listed)) == set(), package


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Two words\n[good](#two-words) [bad](#three-words) [gone](no.md) `tests/no.py` `store/no.py`\n"
        "`store.runs.run.RunRef` `store.runs.run.NoRef` `store.no` `make test` `make no`\n",
        encoding="utf-8",
    )
    assert broken_links(page) == ["#three-words", "no.md"]
    assert missing_paths(page) == ["tests/no.py", "store/no.py"]
    assert missing_names(page) == ["store.runs.run.NoRef", "store.no"]
    assert missing_commands(page) == ["no"]


def test_every_decision_record_follows_the_template() -> None:
    for record in sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")):
        lines = record.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith(f"# {record.name[:4]}: ")
        assert re.match(r"Status: \w+, \d{4}-\d\d-\d\d", lines[2]), record.name
        headings = [line for line in lines if line.startswith("## ")]
        assert headings == ["## Context", "## Decision", "## Consequences"], record.name
        assert f"]({record.name})" in (record.parent / "README.md").read_text(encoding="utf-8")

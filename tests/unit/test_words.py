"""One vocabulary in code and documentation: words that were replaced do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FILES = sorted(
    [
        *ROOT.glob("src/rejoinder/**/*.py"),
        *(path for path in ROOT.glob("tests/**/*.py") if path != Path(__file__)),
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
    ]
)
REPLACED = {
    r"\btold watermark|\btelling\b": "explicit watermark",
    r"\b(?:is|are|was|were) over(?=[.,;:)]|$)": "expired",
    r"\bforg(?:et|ets|ot|otten|etting)\b": "expire",
    r"\bmelt(?:s|ed|ing)?\b": "flatten",
    r"\bjudg(?:e|es|ed|ing)\b": "match status",
    r"\bremember(?:s|ed|ing)?\b": "store, persist",
    r"\bpartners?\b": "match",
    r"\bcom(?:e|es|ing) out\b|\bcame out\b|\blet out\b|\blet_pass\b": "emit",
    r"\brelease_time\b|\bemission\.release\b": "emit time",
    r"__lock\b": "__gate",
    r"\btimely\b|\bpunctual\b|\btimeless\b": "on time, keeps_nulls",
    r"\bnot[ _]offered\b|\bOFFERED\b": "not supported",
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|limit\b)[a-z]+": "is not a …",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bdefined otherwise\b|\btake another state\b": "differs from the definition stored in this state",
    r"\basked for no more\b|\bwho (?:asks|reads)\b": "no longer needed",
    r"\bclass (?:Promise|Forgetting|Rising|Limits?)\b": "PendingWatermark, Expiry, Monotone, RetentionBound",
}
MODULES = {
    "ahead",
    "doubles",
    "holding",
    "limits",
    "melting",
    "missing",
    "neighbours",
    "remembering",
    "telling",
    "united",
}
MIRRORED = (
    {"sql/bind", "plan/operations", "runtime/steps"},
    {"sql/functions", "sql/types", "kernels/duckdb"},
)
"""Packages that mirror each other file by file: a module has the same name in each. So do connectors."""


@pytest.mark.parametrize("pattern", REPLACED)
def test_a_replaced_word_does_not_come_back(pattern: str) -> None:
    word = re.compile(pattern, re.IGNORECASE if pattern.islower() else 0)
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if word.search(line)
    ]
    assert not lines, f"use: {REPLACED[pattern]}\n" + "\n".join(lines)


def test_a_module_name_means_one_thing() -> None:
    packages: dict[str, set[str]] = {}
    for path in (path.relative_to(ROOT / "src/rejoinder") for path in ROOT.glob("src/rejoinder/**/*.py")):
        if path.parts[0] != "connectors":
            packages.setdefault(path.stem, set()).add("/".join(path.parts[:2]))
    del packages["__init__"]
    repeated = {name: found for name, found in packages.items() if len(found) > 1}
    assert {name: found for name, found in repeated.items() if not any(found <= mirror for mirror in MIRRORED)} == {}
    assert MODULES.isdisjoint(packages)

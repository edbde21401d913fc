"""The examples of the documentation's pages are run, and give what is printed below them."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from rejoinder.api.relations.relation import Relation
from rejoinder.ir.logical import Policy
from rejoinder.sql.bind.emit_clause import split_emission
from rejoinder.sql.bind.relations.joins import KINDS

DOCS = Path(__file__).parent.parent.parent / "docs"
# Methods of `Relation` that the table of dsl.md does not show: what makes views, and pages of their own.
ELSEWHERE = {"relation", "to", "through", "enrich"}
PAGES = sorted(path.name for path in DOCS.glob("*.md") if ">>> " in path.read_text(encoding="utf-8"))


def run_page(name: str) -> dict[str, Any]:
    """Run the examples of a page; give the names that they leave."""
    text = (DOCS / name).read_text(encoding="utf-8")
    bare = "\n".join("" if line.startswith("```") else line for line in text.splitlines())
    examples = doctest.DocTestParser().get_doctest(bare, {}, name, name, 0)
    results = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(examples, clear_globs=False)
    assert results.attempted and not results.failed
    return examples.globs


@pytest.mark.parametrize("name", PAGES)
def test_examples_of_a_page(name: str) -> None:
    run_page(name)


def test_there_are_pages_to_run() -> None:
    assert {"joins.md", "renderings.md", "sources.md", "windows.md"} <= set(PAGES)


def test_python_says_all_of_sql() -> None:
    """Each line of the table in dsl.md has one plan in SQL and Python; no kind of join and no emission is left out."""
    lines = (DOCS / "dsl.md").read_text(encoding="utf-8").partition("## All of SQL")[2].splitlines()
    found = [re.fullmatch(r"\| `(SELECT .*)` \| `(.*)` \|", line) for line in lines]
    table = [match.groups() for match in found if match is not None]
    names = run_page("dsl.md")
    home, plans = names["home"], set()
    for sql, python in table:
        made = eval(python, names)  # noqa: S307
        if isinstance(made, list):
            assert made and str(made) == str(home.sql(sql)), python
            continue
        plans.add(made.explain())
        assert made.explain() == home.sql(f"EXPLAIN {sql}"), python
    for side, kind in KINDS:
        on = "" if kind == "CROSS" else " ON item = name"
        assert home.sql(f"EXPLAIN SELECT * FROM orders {side} {kind} JOIN makers{on}") in plans, (side, kind)
    spelled = " ".join(python for _, python in table)
    for name, method in vars(Relation).items():
        if callable(method) and not name.startswith("_") and name not in ELSEWHERE:
            assert f".{name}(" in spelled, f"the table does not show Relation.{name}"
    clauses = [split_emission(sql)[1] for sql, _ in table]
    assert {clause.policy for clause in clauses if clause is not None} == set(get_args(Policy))

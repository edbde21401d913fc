"""Unnesting: SQL before and after. `unnesting.txt` has a reason, a query and its relations, one line each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.plan.unnest.unnested_text import unnested

CASES = [case.splitlines() for case in Path(__file__).with_name("unnesting.txt").read_text("utf-8").split("\n\n")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].removeprefix("# "))
def test_a_subquery_becomes_joins_of_independent_relations(case: list[str]) -> None:
    reason, before, after = case
    assert reason.startswith("# ")
    assert unnested(before) == after


def test_equal_subqueries_are_one_relation() -> None:
    total = "(SELECT max(z) FROM c WHERE c.k = a.k)"
    assert unnested(f"SELECT {total} AS m, {total} + 1 AS n FROM a") == unnested(f"SELECT {total} AS m FROM a")


def test_a_query_without_subqueries_stays_as_it_is() -> None:
    assert unnested("SELECT a.k FROM a LEFT JOIN c ON a.k = c.k WHERE x > 1") == (
        "((a LEFT JOIN c ON (a.k = c.K)) WHERE (a.x > CAST(1 AS INTEGER)))"
    )

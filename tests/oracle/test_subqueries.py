"""Subqueries in every place of a query (`subqueries.yaml`), over random changes of three small relations."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given

from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM
from tests.oracle.scenario import Action, CreateView, Scenario, play
from tests.oracle.test_written_queries import SPECS, flows

_WRITTEN = yaml.safe_load(Path(__file__).with_name("subqueries.yaml").read_text(encoding="utf-8"))
QUERIES: dict[str, str | list[str]] = {
    f"{place}: {name}": query for place, queries in _WRITTEN.items() for name, query in queries.items()
}


@pytest.mark.parametrize("form", QUERIES)
@budget(1)
@given(actions=flows(), parallelism=PARALLELISM)
def test_the_view_equals_the_query(form: str, actions: tuple[Action, ...], parallelism: int) -> None:
    written = QUERIES[form]
    view = CreateView("v", written) if isinstance(written, str) else CreateView("v", *written)
    play(Scenario(SPECS, tuple(view if isinstance(a, CreateView) else a for a in actions), parallelism))

"""Subqueries in every place of a query (`subqueries.yaml`), over random changes of three small relations."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import given

from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM
from tests.oracle.scenario import Action
from tests.oracle.test_written_queries import SPECS
from tests.oracle.written_views import Written, flows, play_views, together

_WRITTEN = yaml.safe_load(Path(__file__).with_name("subqueries.yaml").read_text(encoding="utf-8"))
QUERIES: dict[str, str | list[str]] = {
    f"{place}: {name}": query for place, queries in _WRITTEN.items() for name, query in queries.items()
}


@together(QUERIES)
@budget(1)
@given(actions=flows(SPECS), parallelism=PARALLELISM)
def test_the_view_equals_the_query(written: list[Written], actions: tuple[Action, ...], parallelism: int) -> None:
    play_views(SPECS, written, actions, parallelism)

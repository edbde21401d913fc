"""Every view equals DuckDB's answer after every epoch, and the sum of its changes, in random flows."""

from __future__ import annotations

from hypothesis import given

from tests.oracle.budget import budget
from tests.oracle.generation import scenarios
from tests.oracle.scenario import Scenario, play


@budget(5, deep=30)
@given(scenario=scenarios())
def test_every_view_equals_the_batch_query_after_every_epoch(scenario: Scenario) -> None:
    play(scenario)

"""Random edits of random flows: views are replaced, renamed, added and dropped between epochs and restarts.

After every edit each view equals DuckDB's answer to the new query and the sum of all its changes, the edit included.
The arrangements of sources keep their files.
"""

from __future__ import annotations

from hypothesis import given

from tests.oracle.budget import budget
from tests.oracle.generation import ALTERATIONS, EDITS, scenarios
from tests.oracle.scenario import Scenario, play


@budget(12, deep=17)
@given(scenario=scenarios(actions=12, choices=EDITS))
def test_every_view_equals_the_batch_query_after_every_edit(scenario: Scenario) -> None:
    play(scenario)


@budget(12, deep=17)
@given(scenario=scenarios(actions=14, choices=ALTERATIONS))
def test_every_view_equals_the_batch_query_after_every_alteration_of_a_source(scenario: Scenario) -> None:
    play(scenario)

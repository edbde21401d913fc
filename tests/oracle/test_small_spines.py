"""The same with spines so small that every epoch merges, in pieces: merging must never be seen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from rejoinder.runtime.steps import arrange, emit
from rejoinder.store.runs import spine
from tests.oracle.budget import budget
from tests.oracle.generation import scenarios
from tests.oracle.scenario import Scenario, play


@pytest.fixture(scope="module", autouse=True)
def _small_spines() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spine, "SMALLEST_LEVEL_ROWS", 2)
        patch.setattr(spine, "PIECE_BYTES", 4_000)
        patch.setattr(spine, "SPARE_CREDIT", 1)
        patch.setattr(arrange, "FAN", 2)
        patch.setattr(emit, "CHANGELOG_FAN", 2)
        yield


@budget(3, deep=15)
@given(scenario=scenarios(actions=11))
def test_merging_changes_no_result(scenario: Scenario) -> None:
    play(scenario)

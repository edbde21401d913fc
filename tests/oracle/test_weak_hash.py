"""The same with a hash of sixteen values that nobody may trust: collisions must cost time, never rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given

from rejoinder.kernels.arrow import hashing
from rejoinder.kernels.arrow.columns import UInt64
from rejoinder.plan.physical import arrangement
from tests.oracle.budget import budget
from tests.oracle.generation import scenarios
from tests.oracle.scenario import Scenario, play

FOUR_BITS = np.uint64(0xC000_0000_0000_0003)


@pytest.fixture(scope="module", autouse=True)
def _weak_hash() -> Iterator[None]:
    strong = hashing.mix

    def weak(x: UInt64) -> UInt64:
        result: UInt64 = strong(x) & FOUR_BITS
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "mix", weak)
        patch.setattr(arrangement, "is_exact", lambda types: False)
        yield


@budget(3, deep=15)
@given(scenario=scenarios())
def test_colliding_hashes_change_no_result(scenario: Scenario) -> None:
    play(scenario)

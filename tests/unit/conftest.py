"""Hypothesis in the unit tests: few examples and no surprises; the long search is in `tests/oracle`.

And a hash of four values, for tests of what happens when hashes collide.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

from rejoinder.kernels.arrow import hashing
from rejoinder.kernels.arrow.columns import UInt64
from tests.deep import IS_DEEP, TIMES

settings.register_profile("unit", max_examples=25 * TIMES, derandomize=not IS_DEEP, deadline=None, print_blob=True)
settings.load_profile("unit")


@pytest.fixture
def weak_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make nearly all hashes collide."""
    strong = hashing.mix

    def weak(x: UInt64) -> UInt64:
        result: UInt64 = strong(x) & np.uint64(0x8000_0000_0000_0001)
        return result

    monkeypatch.setattr(hashing, "mix", weak)

"""A hash of four values, for tests of what happens when hashes collide."""

from __future__ import annotations

import numpy as np
import pytest

from rejoinder.kernels.arrow import hashing
from rejoinder.kernels.arrow.columns import UInt64


@pytest.fixture
def weak_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make nearly all hashes collide."""
    strong = hashing.mix

    def weak(x: UInt64) -> UInt64:
        result: UInt64 = strong(x) & np.uint64(0x8000_0000_0000_0001)
        return result

    monkeypatch.setattr(hashing, "mix", weak)

"""What is random or long: fixed and short in `make test`, for longer and with a new seed in `make test-deep`.

`make test-deep` sets `REJOINDER_TEST_SEED`; with the same seed every random test does the same again. A test that is
marked `DEEP` runs there only.
"""

from __future__ import annotations

import os

import pytest

SEED_VARIABLE = "REJOINDER_TEST_SEED"
SEED = int(os.environ[SEED_VARIABLE]) if os.environ.get(SEED_VARIABLE) else None
IS_DEEP = SEED is not None
TIMES = int(os.environ.get("REJOINDER_TEST_TIMES", "30")) if IS_DEEP else 1
DEEP = pytest.mark.deep


def seeds(count: int) -> range:
    """Seeds of a random test: the numbers below `count`; in `make test-deep` more of them, from its seed on."""
    first = SEED or 0
    return range(first, first + TIMES * count)

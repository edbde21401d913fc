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


def seeds(count: int, times: int = TIMES) -> range:
    """Seeds of a random test: 1 to `count`; in `make test-deep` so many times as many, from its seed on."""
    return range(one_seed(), one_seed() + count * (times if IS_DEEP else 1))


def one_seed() -> int:
    """The seed of a random test that runs once."""
    return 1 if SEED is None else SEED

"""Time limits: a failing example is shrunk before it is printed, and a deep search has no limit at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deep import IS_DEEP

SHRINKING = 1_200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(0 if IS_DEEP else SHRINKING))

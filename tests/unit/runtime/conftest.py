"""Spines so small that they merge in each epoch, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rejoinder.runtime.steps import arrange
from rejoinder.store.runs import spine


@pytest.fixture
def _small() -> Iterator[None]:
    """Merge early, in small pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spine, "SMALLEST_LEVEL_ROWS", 2)
        patch.setattr(spine, "PIECE_BYTES", 600)
        patch.setattr(arrange, "FAN", 2)
        yield

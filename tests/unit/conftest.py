"""Hypothesis in the unit tests: few examples and no surprises; the long search is in `tests/oracle`."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unit", max_examples=25, derandomize=True, deadline=None, print_blob=True)
settings.load_profile("unit")

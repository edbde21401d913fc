"""How long to look. `HYPOTHESIS_PROFILE=deep pytest tests/oracle` looks fifty times as long, with new seeds."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")


def budget(examples: int) -> settings:
    """Settings for a test that tries so many examples in CI. A failing one is printed with the way to run it again."""
    deep = PROFILE == "deep"
    return settings(
        max_examples=examples * (50 if deep else 1),
        derandomize=not deep,
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )

"""Hypothesis profiles. `HYPOTHESIS_PROFILE=deep pytest tests/oracle` looks for longer, with new seeds every time."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "common",
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
settings.register_profile("ci", settings.get_profile("common"), max_examples=60, derandomize=True)
settings.register_profile("deep", settings.get_profile("common"), max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

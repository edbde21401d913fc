"""How many examples to try: a few fixed ones, or many new ones in `make test-deep`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.deep import IS_DEEP, TIMES


def budget(examples: int) -> settings:
    """Settings for a test that tries so many examples. A failing one is printed with the way to run it again."""
    return settings(
        max_examples=examples * TIMES,
        derandomize=not IS_DEEP,
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )

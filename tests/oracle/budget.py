"""How many examples to try: a few fixed ones, or many new ones in `make test-deep`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.deep import IS_DEEP, TIMES


def budget(examples: int, *, deep: int | None = None) -> settings:
    """Settings for a test that tries so many examples, and in `make test-deep` `TIMES` as many, or as `deep`.

    The first example of Hypothesis is the smallest one. A failing example is printed with the way to run it again.
    """
    return settings(
        max_examples=(deep or examples) * TIMES if IS_DEEP else examples,
        derandomize=not IS_DEEP,
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )

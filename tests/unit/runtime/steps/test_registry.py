"""The registry of steps."""

from __future__ import annotations

from typing import get_args

from rejoinder.plan.physical.steps import Step
from rejoinder.runtime.steps.step_registry import STEP_FUNCTIONS


def test_every_step_of_a_plan_has_a_function_in_a_file_of_its_own() -> None:
    assert set(STEP_FUNCTIONS) == set(get_args(Step))
    files = [function.__module__ for function in STEP_FUNCTIONS.values()]
    assert len(set(files)) == len(files)

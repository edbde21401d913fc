"""Sweep as a step: what a change of windows means for a join that does not show their ends."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, HASH
from rejoinder.plan.physical.steps import Sweep, Validity
from rejoinder.runtime.steps.time.sweep import sweep
from rejoinder.runtime.steps.time.validity import validity
from tests.unit.runtime.tasks import meaning, task
from tests.unit.runtime.versions import Versions

STEP = Sweep("windows", "out", "t", "end")


def test_a_late_version_concerns_its_own_window_only() -> None:
    versions = Versions(pa.string(), time=pa.int64())
    versions.epoch([("usd", "1", 10, 1), ("usd", "3", 30, 1)])
    now = task({versions.arrangement.id: versions.spines[0]})
    now.store = versions.store
    now.streams["in"] = versions.table([("usd", "2", 20, 1)])
    validity(now, Validity("in", "windows", versions.arrangement, "end"))
    sweep(now, STEP)
    assert meaning(now.streams["out"]) == {("usd", "1", 20, 30): -1, ("usd", "2", 20, 30): 1}
    assert HASH in now.streams["out"].column_names


def test_nothing_comes_of_nothing_and_unit_diffs_are_left_out() -> None:
    now = task()
    sweep(now, STEP)
    assert "out" not in now.streams
    row = {"p": ["a", "a"], "t": [1, 1], "end": [2, 2]}
    now.streams["windows"] = pa.table({**row, DIFF: [1, -1]})
    sweep(now, STEP)
    assert "out" not in now.streams
    now.streams["windows"] = pa.table({**row, DIFF: [2, -1]})
    sweep(now, STEP)
    assert DIFF not in now.streams["out"].column_names and meaning(now.streams["out"]) == {("a", 1, 2): 1}

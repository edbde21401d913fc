"""Sweep: cancel retractions and insertions of overlapping intervals (see `kernels.arrow.intervals`). Stateless."""

from __future__ import annotations

from rejoinder.kernels.arrow.columns import drop_unit_diffs
from rejoinder.kernels.arrow.intervals import sweep as swept
from rejoinder.plan.physical.steps import Sweep
from rejoinder.runtime.task import Task


def sweep(task: Task, step: Sweep) -> None:
    """Run the step. The output has the columns of the input, and its key hash if it has one."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    result = swept(stream, step.start, step.end)
    if result.num_rows:
        task.streams[step.output] = drop_unit_diffs(result)

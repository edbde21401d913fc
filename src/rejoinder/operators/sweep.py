"""Sweep: cancel what a stream of intervals takes back and gives again (see `kernels.sweep`). Stateless."""

from __future__ import annotations

from rejoinder.kernels.columns import drop_unit_diffs
from rejoinder.kernels.sweep import sweep as swept
from rejoinder.operators.task import Task
from rejoinder.plan.steps import Sweep


def sweep(task: Task, step: Sweep) -> None:
    """Run the step: the output has the columns of the input, and its key hash where it has one."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    result = swept(stream, step.start, step.end)
    if result.num_rows:
        task.streams[step.output] = drop_unit_diffs(result)

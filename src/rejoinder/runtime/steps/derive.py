"""Derive: filter and project a stream."""

from __future__ import annotations

from rejoinder.kernels.arrow.columns import DIFF, HASH, drop_unit_diffs
from rejoinder.kernels.duckdb.row_errors import filter_project_marked
from rejoinder.plan.physical.steps import Derive
from rejoinder.runtime.failed_rows import count_failed
from rejoinder.runtime.task import Task


def derive(task: Task, step: Derive) -> None:
    """Filter and project a stream; diffs and key hashes are kept."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    kept = tuple(name for name in (DIFF, HASH) if name in stream.column_names)
    result = filter_project_marked(stream, step.predicate, step.outputs, kept, step.optional)
    result = count_failed(task, result) if step.last else result
    if result.num_rows:
        task.streams[step.output] = drop_unit_diffs(result)

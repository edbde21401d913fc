"""Check: count the rows on which an expression fails, for paths that drop them."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.kernels.arrow.columns import ERROR, without
from rejoinder.kernels.duckdb.row_errors import filter_project_marked, satisfying
from rejoinder.plan.physical.steps import Check
from rejoinder.runtime.failed_rows import count_failed
from rejoinder.runtime.task import Task


def check(task: Task, step: Check) -> None:
    """Run the step.

    A row on which only the predicate fails is counted where its path ends. A row on which a key fails as well matches
    nothing, so its path would never end: it is counted here.
    """
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    parts: tuple[pa.Table | None, ...] = (stream,)
    if step.predicate is not None:
        passed, failed = satisfying(stream, step.predicate)
        is_marked = ERROR in stream.column_names
        parts = (passed, failed if failed is None or is_marked else without(failed, [ERROR]))
    outputs = [(str(number), expression) for number, expression in enumerate(step.expressions)]
    for part in parts:
        if part is not None and part.num_rows:
            count_failed(task, filter_project_marked(part, None, outputs, tuple(part.column_names)))

"""Coverage: turn changes of validity windows into changes for left joins, which pad times that no window contains.

Algebra: the windows of a partition are adjacent and the last one never ends, so only the times before the first window
are not covered. Padding is one more window, from the beginning of time to the first start. Its change follows from the
first live start of each changed partition before and after the epoch. Cost follows the changed rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64, contiguous, diffs, hashes, replaced, take
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.nearest import nearest
from rejoinder.kernels.arrow.ordered import LEAST, as_column, last_value, sorted_by_hash_and_value
from rejoinder.kernels.duckdb.evaluate import filter_project
from rejoinder.plan.physical.join_steps import Coverage
from rejoinder.runtime.matching.range_matching import search_runs
from rejoinder.runtime.task import Task, key_columns, needles


def coverage(task: Task, step: Coverage) -> None:
    """Run the step; the output carries `__hash` of the partition."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    stream = needles(stream, step.arrangement.key, hashed=True)
    if not stream.num_rows:
        return
    keys = dict(zip(step.keys, key_columns(stream, step.arrangement.key), strict=True))
    result = contiguous([_windows(stream, keys, step), _padding(task, stream, keys, step)])
    task.streams[step.output] = result


def _windows(stream: pa.Table, keys: dict[str, pa.ChunkedArray], step: Coverage) -> pa.Table:
    rows = replaced(filter_project(stream, None, step.outputs, keep=(HASH,)), DIFF, diffs(stream))
    columns = {**keys, step.start: stream.column(step.bounds[0]), step.end: stream.column(step.bounds[1])}
    if step.present is not None:
        columns[step.present] = pa.array(np.ones(stream.num_rows, bool))
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    return rows


def _padding(task: Task, stream: pa.Table, keys: dict[str, pa.ChunkedArray], step: Coverage) -> pa.Table:
    """Return the change of the padding window of each changed partition: retract the old one, insert the new one."""
    keyed = pa.table({**keys, HASH: stream.column(HASH)})
    groups = group_rows(keyed, list(step.keys))
    order = np.argsort(hashes(keyed)[groups.starts], kind="stable")
    first_rows = groups.starts[order]
    partitions = take(keyed, first_rows)
    kind = step.arrangement.schema.field(step.bounds[0]).type
    before = task.runs(step.arrangement, after=False)
    after = [*before, sorted_by_hash_and_value(stream, step.bounds[0])]
    parts = []
    for runs, sign in ((before, -1), (after, 1)):
        ends = _first_starts(take(stream, first_rows), runs, step, last_value(kind))
        rows = partitions.append_column(step.start, as_column(np.full(len(ends), LEAST), kind))
        rows = rows.append_column(step.end, as_column(ends, kind))
        parts.append(rows.append_column(DIFF, pa.array(np.full(len(ends), sign, np.int64))))
    padding = contiguous(parts)
    for name, expression in step.outputs:
        padding = padding.append_column(name, pa.nulls(padding.num_rows, expression.type))
    if step.present is not None:
        padding = padding.append_column(step.present, pa.nulls(padding.num_rows, pa.bool_()))
    return padding


def _first_starts(partitions: pa.Table, runs: Sequence[pa.Table], step: Coverage, none: int) -> Int64:
    search = search_runs(partitions, runs, step.arrangement.key, step.arrangement)
    values, exists = nearest(search, np.full(search.size, LEAST), later=True, strict=False)
    return np.where(exists, values, none)

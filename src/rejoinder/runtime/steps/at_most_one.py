"""At most one row per key: the row of each key that has one, and a row of NULLs for each key that has more.

Algebra: output = −(the key's row before) + (the key's row after) for every key that changed, nothing where both are
equal. Copies count: two equal rows are two. Cost follows the rows of the changed keys, of which there is more than one
only in an epoch that fails, or for keys that no outer row asks for.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.arrow.columns import DIFF, HASH, contiguous, diffs, hashes, replaced, single_chunk, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.groups import Groups, group_rows
from rejoinder.kernels.arrow.probe import match
from rejoinder.plan.physical.steps import AtMostOne
from rejoinder.runtime.task import Task, needles


def at_most_one(task: Task, step: AtMostOne) -> None:
    """Run the step; the output stream carries `__hash` of the key. An Arrange step maintains the arrangement."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    changes = _with_one_zero(needles(stream, step.arrangement.key, hashed=False), step)
    columns = [*step.arrangement.schema.names, HASH]
    before = consolidate(contiguous([changes.slice(0, 0).select(columns), *_rows_before(task, changes, step, columns)]))
    after = consolidate(
        contiguous([before, changes.select([*columns, *([DIFF] if DIFF in changes.column_names else [])])])
    )
    old, new = _only_rows(before, step), _only_rows(after, step)
    change = consolidate(contiguous([new, replaced(old, DIFF, -diffs(old))]))
    if change.num_rows:
        task.streams[step.output] = change


def _rows_before(task: Task, changes: pa.Table, step: AtMostOne, columns: list[str]) -> list[pa.Table]:
    """Return the rows before this epoch whose hash is that of a changed key; rows of other keys cancel."""
    if step.whole:
        return []
    wanted = np.unique(hashes(changes))
    runs = task.runs(step.arrangement, after=False)
    return [_with_one_zero(take(run, match(wanted, hashes(run))[1]), step) for run in runs]


def _only_rows(rows: pa.Table, step: AtMostOne) -> pa.Table:
    """Return one row for each key of consolidated rows, with the column `many`."""
    groups = group_rows(rows, step.keys) if step.keys else _one_group(rows)
    totals = np.bincount(groups.group_of, diffs(rows), len(groups.starts)).astype(np.int64)
    single = take(rows, np.flatnonzero(totals[groups.group_of] == 1))
    several = take(rows, groups.starts[totals > 1])
    kept = {*step.keys, HASH}
    nulled = pa.table({name: c if name in kept else pa.nulls(len(c), c.type) for name, c in _columns(several)})
    return contiguous([_marked(single, step, many=False), _marked(nulled, step, many=True)])


def _one_group(rows: pa.Table) -> Groups:
    return Groups(np.zeros(rows.num_rows, np.int64), np.zeros(min(rows.num_rows, 1), np.int64))


def _marked(rows: pa.Table, step: AtMostOne, *, many: bool) -> pa.Table:
    ones = replaced(rows, DIFF, np.ones(rows.num_rows, np.int64))
    names = [*step.arrangement.schema.names, step.many, HASH, DIFF]
    return replaced(ones, step.many, np.full(rows.num_rows, many)).select(names)


def _columns(rows: pa.Table) -> list[tuple[str, pa.ChunkedArray]]:
    return list(zip(rows.column_names, rows.columns, strict=True))


def _with_one_zero(rows: pa.Table, step: AtMostOne) -> pa.Table:
    """Write -0.0 in a key as 0.0: they are one key."""
    for name in step.keys:
        values = single_chunk(rows.column(name))
        if pa.types.is_floating(values.type):
            rows = replaced(rows, name, pc.add(values, pa.scalar(0.0, values.type)))
    return rows

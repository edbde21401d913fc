"""Presence: turn changes of a relation into changes for joins that test whether a key has rows, or pad missing keys.

Algebra: for each key, flip = [count after > 0] − [count before > 0]. A semi join outputs `flip`, an anti join −flip,
and a left join the changed rows themselves and −flip rows of padding. Cost follows the changed keys; counting the rows
of a key needs no pass over them if hashes decide equality and no row was retracted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.ir.expressions.expression import column
from rejoinder.kernels.arrow.columns import DIFF, ERROR, HASH, contiguous, diffs, hashes, replaced, take
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.duckdb.evaluate import filter_project
from rejoinder.kernels.duckdb.row_errors import satisfying
from rejoinder.plan.physical.arrangement import Key
from rejoinder.plan.physical.join_steps import Presence
from rejoinder.runtime.matching.key_matching import Matching, changed
from rejoinder.runtime.task import Task, key_columns


def presence(task: Task, step: Presence) -> None:
    """Run the step; the output carries `__hash` of the key."""
    stream = changed(task, step)
    failed = None
    if stream is not None and step.filter is not None:
        stream, failed = satisfying(stream, step.filter)
    parts = [_change(task, stream, step)] if stream is not None and stream.num_rows else []
    if failed is not None:
        parts.append(_failed(failed, step))
    result = contiguous(parts) if parts else None
    if result is not None and result.num_rows:
        task.streams[step.output] = result


def _change(task: Task, stream: pa.Table, step: Presence) -> pa.Table:
    keys = dict(zip(step.keys, key_columns(stream, step.arrangement.key), strict=True))
    keyed = pa.table({**keys, HASH: stream.column(HASH), DIFF: pa.array(diffs(stream))})
    flips = _flips(task, keyed, step)
    if step.mode != "left":
        return flips if step.mode == "semi" else replaced(flips, DIFF, -diffs(flips))
    return _padded(stream, keys, flips, step)


def _failed(rows: pa.Table, step: Presence) -> pa.Table:
    """Return changed rows on which the filter fails: they are not matches, but their pairs fail."""
    columns = dict(zip(step.keys, key_columns(rows, step.arrangement.key), strict=True))
    if step.mode == "left":
        columns |= {name: filter_project(rows, None, [(name, e)]).column(0) for name, e in step.outputs}
        if step.present is not None:
            columns[step.present] = pa.array(np.ones(rows.num_rows, bool))
    return pa.table({**columns, HASH: rows.column(HASH), DIFF: pa.array(diffs(rows)), ERROR: rows.column(ERROR)})


def _flips(task: Task, keyed: pa.Table, step: Presence) -> pa.Table:
    """Return the keys that the relation gained (+1) or lost (−1)."""
    groups = group_rows(keyed, list(step.keys))
    change = np.bincount(groups.group_of, weights=diffs(keyed), minlength=len(groups.starts)).astype(np.int64)
    order = np.argsort(hashes(keyed)[groups.starts], kind="stable")
    order = order[np.flatnonzero(change[order])]
    change = change[order]
    candidates = take(keyed.drop_columns([DIFF]), groups.starts[order])
    runs = task.runs(step.arrangement, after=False)
    arranged = step.arrangement.key
    key = Key(tuple(column(n, p.type) for n, p in zip(step.keys, arranged.parts, strict=True)), arranged.null_safe)
    matching = Matching(candidates, runs, key, step.arrangement, task.max_pairs, step.user)
    before = matching.counts(step.filter)
    flip = (before + change > 0).astype(np.int64) - (before > 0).astype(np.int64)
    rows = np.flatnonzero(flip)
    return replaced(take(candidates, rows), DIFF, flip[rows])


def _padded(stream: pa.Table, keys: dict[str, pa.ChunkedArray], flips: pa.Table, step: Presence) -> pa.Table:
    """Return the changed rows with their key, and the change of the padding."""
    rows = filter_project(stream, None, step.outputs, keep=(HASH,))
    rows = replaced(rows, DIFF, diffs(stream))
    for name, values in keys.items():
        rows = rows.append_column(name, values)
    padding = replaced(flips, DIFF, -diffs(flips))
    for name, expression in step.outputs:
        padding = padding.append_column(name, pa.nulls(flips.num_rows, expression.type))
    if step.present is not None:
        rows = rows.append_column(step.present, pa.array(np.ones(rows.num_rows, bool)))
        padding = padding.append_column(step.present, pa.nulls(flips.num_rows, pa.bool_()))
    if not padding.num_rows:
        return rows
    return contiguous([rows, padding])

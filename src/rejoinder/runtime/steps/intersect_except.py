"""INTERSECT and EXCEPT: a row is in the result as often as its copies l on the left and r on the right side say.

Algebra: INTERSECT ALL min(l, r), INTERSECT [l > 0 and r > 0], EXCEPT ALL max(l − r, 0), EXCEPT [l > 0 and r = 0]. The
output is that after the epoch − that before it, for each row that changed on either side. Cost follows these rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, Int64, diffs, replaced, take, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.plan.physical.steps import IntersectExcept
from rejoinder.runtime.matching.equal_rows import equal_rows
from rejoinder.runtime.task import Task, needles


def intersect_except(task: Task, step: IntersectExcept) -> None:
    """Run the step. The arrangement itself is kept by an Arrange step on the same stream."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    changes = needles(stream, step.arrangement.key, hashed=False)
    each = replaced(without(changes, [step.side]), DIFF, np.ones(changes.num_rows, np.int64))
    rows = sorted_by_hash(consolidate(each))
    before = np.zeros((2, rows.num_rows), np.int64)
    for run in [] if step.whole else task.runs(step.arrangement.id, after=False):
        before += _copies(rows, run, step.side)
    after = before + _copies(rows, changes, step.side)
    change = _result(step, after) - _result(step, before)
    kept = np.flatnonzero(change)
    if len(kept):
        task.streams[step.output] = replaced(take(rows, kept), DIFF, change[kept])


def _copies(rows: pa.Table, run: pa.Table, side: str) -> Int64:
    """How many copies of each row a run has: on the left side, and on the right one."""
    at, there = equal_rows(rows, run)
    is_left = np.asarray(run.column(side))[there]
    counted = diffs(run)[there]
    sides = [np.bincount(at, counted * of_side, rows.num_rows) for of_side in (is_left, ~is_left)]
    return np.array(sides).astype(np.int64)


def _result(step: IntersectExcept, copies: Int64) -> Int64:
    """How often each row is in the result."""
    left, right = copies
    result: Int64
    match step.keeps:
        case "intersect":
            result = np.minimum(left, right)
        case "except":
            result = np.maximum(left - right, 0) if step.all else np.where(right > 0, 0, left)
    return result if step.all else np.minimum(result, 1)

"""INTERSECT and EXCEPT [ALL] over the number of copies of a row on either side.

Algebra: with l copies on the left and r on the right, the result has min(l, r) for INTERSECT ALL, [l > 0 and r > 0] for
INTERSECT, max(l − r, 0) for EXCEPT ALL, [l > 0 and r = 0] for EXCEPT. The output is the result after the epoch minus
the result before it, for each row that changed on either side. Cost follows these rows.
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
    """Run the step. An Arrange step on the same stream maintains the arrangement."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    changes = needles(stream, step.arrangement.key, hashed=False)
    # With diffs of 1, `consolidate` keeps each changed row once: changes of the two sides must not cancel here.
    unit_changes = replaced(without(changes, [step.side]), DIFF, np.ones(changes.num_rows, np.int64))
    rows = sorted_by_hash(consolidate(unit_changes))
    before = np.zeros((2, rows.num_rows), np.int64)
    for run in [] if step.whole else task.runs(step.arrangement, after=False):
        before += _copies(rows, run, step.side)
    after = before + _copies(rows, changes, step.side)
    change = _result(step, after) - _result(step, before)
    kept = np.flatnonzero(change)
    if len(kept):
        task.streams[step.output] = replaced(take(rows, kept), DIFF, change[kept])


def _copies(rows: pa.Table, run: pa.Table, side: str) -> Int64:
    """Return the number of copies of each row in a run: of the left side, and of the right side."""
    row_numbers, run_rows = equal_rows(rows, run)
    is_left = np.asarray(run.column(side))[run_rows]
    copies = diffs(run)[run_rows]
    sides = [np.bincount(row_numbers, copies * of_side, rows.num_rows) for of_side in (is_left, ~is_left)]
    return np.array(sides).astype(np.int64)


def _result(step: IntersectExcept, copies: Int64) -> Int64:
    """Return the number of copies of each row in the result."""
    left, right = copies
    result: Int64
    match step.keeps:
        case "intersect":
            result = np.minimum(left, right)
        case "except":
            result = np.maximum(left - right, 0) if step.all else np.where(right > 0, 0, left)
    return result if step.all else np.minimum(result, 1)

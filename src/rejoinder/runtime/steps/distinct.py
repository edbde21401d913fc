"""Distinct: each row once, however many copies the input has.

Algebra: output = [count after > 0] − [count before > 0] for each row that changed. The arrangement, keyed by the whole
row, counts the copies. Cost follows the changed rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64, diffs, replaced, take, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.plan.physical.steps import Distinct
from rejoinder.runtime.matching.equal_rows import equal_rows
from rejoinder.runtime.task import Task


def distinct(task: Task, step: Distinct) -> None:
    """Run the step. An Arrange step on the same stream maintains the arrangement."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    changed = sorted_by_hash(consolidate(stream))
    before = np.zeros(changed.num_rows, np.int64) if step.whole else counts_before(task, changed, step)
    after = before + diffs(changed)
    change = (after > 0).astype(np.int64) - (before > 0).astype(np.int64)
    rows = np.flatnonzero(change)
    if len(rows):
        task.streams[step.output] = without(replaced(take(changed, rows), DIFF, change[rows]), [HASH])


def counts_before(task: Task, changed: pa.Table, step: Distinct) -> Int64:
    """Return the number of copies of each changed row before this epoch."""
    counts = np.zeros(changed.num_rows, np.int64)
    for run in task.runs(step.arrangement, after=False):
        left, right = equal_rows(changed, run)
        counts += np.bincount(left, weights=diffs(run)[right], minlength=len(counts)).astype(np.int64)
    return counts

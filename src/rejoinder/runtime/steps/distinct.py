"""Distinct: each row once, however many copies the input has.

Algebra: output = [count after > 0] − [count before > 0] for each row that changed. The arrangement, keyed by the whole
row, counts the copies. Cost follows the changed rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import (
    DIFF,
    HASH,
    Int64,
    diffs,
    hashes,
    payload_names,
    replaced,
    single_chunk,
    take,
    without,
)
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.equality import not_distinct
from rejoinder.kernels.arrow.probe import match
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.plan.physical.steps import Distinct
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
    names = payload_names(changed)
    for run in task.runs(step.arrangement.id, after=False):
        left, right = match(hashes(changed), hashes(run))
        same = np.ones(len(left), bool)
        for name in names if len(left) else []:
            new = single_chunk(changed.column(name)).take(pa.array(left))
            old = single_chunk(run.column(name)).take(pa.array(right))
            same &= not_distinct(new, old)
        counts += np.bincount(left[same], weights=diffs(run)[right[same]], minlength=len(counts)).astype(np.int64)
    return counts

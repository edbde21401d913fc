"""Clip: keep the rows of a relation that have more inserts than deletes. Stateless.

A changelog that is read again may contain deletes whose rows had expired, so that they were not checked. A delete
without a row changes nothing. Cost follows the relation: the step is part of a hydration.
"""

from __future__ import annotations

import numpy as np

from rejoinder.kernels.arrow.columns import diffs, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.plan.physical.steps import Clip
from rejoinder.runtime.task import Task


def clip(task: Task, step: Clip) -> None:
    """Run the step."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    total = consolidate(stream)
    task.streams[step.output] = take(total, np.flatnonzero(diffs(total) > 0))

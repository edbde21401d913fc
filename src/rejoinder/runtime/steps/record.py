"""Record: turn the net changes of an epoch into rows of an append-only relation.

Algebra: a change with diff n becomes |n| copies of the row, with the sign as `undo`, the epoch, and its time.
Stateless: equal rows are in the same bucket, where they are consolidated first.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, HASH, diffs, drop_unit_diffs, replaced, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.plan.physical.steps import Record
from rejoinder.runtime.task import Task


def record(task: Task, step: Record) -> None:
    """Run the step."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    net = consolidate(without(stream, [HASH]))
    if not net.num_rows:
        return
    signed = diffs(net)
    rows = net.num_rows
    net = without(net, [DIFF])
    for name, values in (
        (step.undo, pa.array(signed < 0)),
        (step.epoch, pa.array(np.full(rows, task.epoch, np.int64))),
        (step.time, pa.array(np.full(rows, task.clock.now, np.int64)).cast(pa.timestamp("us", tz="UTC"))),
    ):
        net = net.append_column(name, values)
    task.streams[step.output] = drop_unit_diffs(replaced(net, DIFF, np.abs(signed)))

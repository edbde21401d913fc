"""Partial first rows: drop rows that enough others of the same stream precede, before the stream is sent.

The rows that remain are sorted by partition and sort key, so that later rounds need not gather them again to sort them.
Cost: a sort of the keys, which are read where they lie, and one pass over the rows that remain.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import diffs, single_chunk, take
from rejoinder.kernels.arrow.equality import not_distinct
from rejoinder.kernels.arrow.ordered import order_by_hash_and_value
from rejoinder.plan.physical.window_steps import PartialFirstRows
from rejoinder.runtime.task import Task, key_columns, partition_hashes


def partial_first_rows(task: Task, step: PartialFirstRows) -> None:
    """Run the step. A stream that retracts rows is passed on as it is."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    if int(diffs(stream).min()) < 0:
        task.streams[step.output] = stream
        return
    keys = partition_hashes(stream, step.key)[0]
    order = order_by_hash_and_value(keys, single_chunk(stream.column(step.order)))
    begins = np.ones(len(order), bool)
    begins[1:] = keys[order[1:]] != keys[order[:-1]]
    if not step.key.exact:  # partitions may share a hash; the sort key, which begins with the partition, separates them
        for column in key_columns(stream, step.key):
            values = single_chunk(column).take(pa.array(order))
            begins[1:] |= ~not_distinct(values[1:], values[:-1])
    numbers = np.arange(len(order))
    preceding = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
    task.streams[step.output] = take(stream, order[preceding < step.most])

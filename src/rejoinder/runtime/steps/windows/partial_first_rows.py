"""Partial first rows: drop rows that enough others of the same stream precede, before the stream is sent.

The rows that remain are sorted by partition and order, so that later rounds need not gather them again to sort them.
Cost: a sort of the order values, and one pass over the rows that remain.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.ir.window_calls import SortColumn
from rejoinder.kernels.arrow.columns import Int64, diffs, single_chunk, take
from rejoinder.kernels.arrow.equality import not_distinct
from rejoinder.kernels.arrow.ordered import GREATEST, LEAST, order_by_hash_and_value, order_values
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
    if step.leading is None:
        values = single_chunk(stream.column(step.order))
    else:
        values = pa.array(_ascending(single_chunk(stream.column(step.leading.name)), step.leading))
    order = order_by_hash_and_value(keys, values)
    begins = np.ones(len(order), bool)
    begins[1:] = keys[order[1:]] != keys[order[:-1]]
    if not step.key.exact:  # partitions may share a hash; the sort key, which begins with the partition, separates them
        differs = np.zeros(len(order), bool)
        for column in key_columns(stream, step.key):
            own = single_chunk(column).take(pa.array(order))
            differs[1:] |= ~not_distinct(own[1:], own[:-1])
        if step.leading is not None and bool((differs & ~begins).any()):
            task.streams[step.output] = stream
            return
        begins |= differs
    first = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    place = np.arange(len(order))
    if step.leading is not None:  # rows with equal values are not ordered yet
        ordered = np.asarray(values)[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
        place = np.maximum.accumulate(np.where(begins, place, 0))
    task.streams[step.output] = take(stream, order[place - first < step.most])


def _ascending(column: pa.Array, order: SortColumn) -> Int64:
    """Integers that ascend as the values do in an order. NULL may equal the value at the same end of the range."""
    values = order_values(column).astype(np.int64)
    values = ~values if order.descending else values
    if column.null_count:
        values = np.where(np.asarray(column.is_valid()), values, LEAST if order.nulls_first else GREATEST)
    return values

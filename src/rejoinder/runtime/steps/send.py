"""Send: split a stream by the bucket of its key, for a later round."""

from __future__ import annotations

import numpy as np

from rejoinder.kernels.arrow.columns import HASH, SEQUENCE, replaced, take, without
from rejoinder.kernels.arrow.scatter import scatter
from rejoinder.plan.physical.steps import Send
from rejoinder.runtime.task import Task, partition_hashes


def send(task: Task, step: Send) -> None:
    """Split a stream by bucket and put the parts into the task's outbox."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    stream = without(stream, [HASH])
    keys, valid = partition_hashes(without(stream, [SEQUENCE]), step.channel.key)
    if step.columns is not None:
        stream = stream.select([name for name in stream.column_names if name in step.columns])
    if valid is not None and step.channel.matching_only:
        rows = np.flatnonzero(valid)
        stream, keys = take(stream, rows), keys[rows]
    if step.channel.everywhere:
        whole = replaced(stream, HASH, keys)
        task.outbox += [(bucket, step.channel.number, whole) for bucket in range(task.buckets)]
        return
    for bucket, part in scatter(stream, keys, task.buckets):
        task.outbox.append((bucket, step.channel.number, part))

"""Current: keep the rows whose time the clock of the epochs is in, from a start until an end.

Algebra: output = σ(start ≤ now < end)(V′) − σ(start ≤ before < end)(V), where `before` and `now` are the clocks of the
last epoch and of this one. Changed rows are compared with `now`. Of the other rows, only those enter or leave whose
start or end lies between the two clocks. They are kept by that time, in time segments. Cost: the changes, and the rows
that enter or leave. A row with NULL as a time, or whose end is not after its start, is never current.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.ir.logical import EMIT_AT
from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64, contiguous, diffs, replaced, single_chunk, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.ordered import GREATEST, LEAST, as_column, bounds_of
from rejoinder.plan.operations.time.current_rows import LEAVES
from rejoinder.plan.physical.steps import Current
from rejoinder.runtime.steps.time.hold import keep_pending
from rejoinder.runtime.task import Task, partition_hashes
from rejoinder.store.runs.run import lies_in, read_run
from rejoinder.store.runs.time_values import times_of


def current(task: Task, step: Current) -> None:
    """Run the step, also in an epoch without changes."""
    parts = [*_changed(task, step), *([] if step.whole else _due(task, step))]
    parts = [part for part in parts if part.num_rows]
    if not parts:
        return
    result = consolidate(contiguous(parts))
    if result.num_rows:
        task.streams[step.output] = result


def _names(step: Current) -> list[str]:
    return [name for name in step.pending.schema.names if name not in (EMIT_AT, LEAVES)]


def _changed(task: Task, step: Current) -> list[pa.Table]:
    """Return the changed rows that are current, and keep when they will enter or leave."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return []
    stream = consolidate(replaced(stream, DIFF, diffs(stream)))
    if not stream.num_rows:
        return []
    start, has_start = _times(stream, step.start, LEAST)
    end, has_end = _times(stream, step.end, GREATEST)
    possible = has_start & has_end & (start < end)
    now = task.clock.now
    rows = stream.select([*_names(step), DIFF])
    if step.keeps:
        enters, leaves = possible & (start > now), possible & (end > now) & (end < GREATEST)
        _keep(task, step, [(rows, enters, start, False), (rows, leaves, end, True)])
    return [take(rows, np.flatnonzero(possible & (start <= now) & (now < end)))]


def _times(stream: pa.Table, name: str | None, none: int) -> tuple[Int64, Mask]:
    if name is None:
        return np.full(stream.num_rows, none, np.int64), np.ones(stream.num_rows, bool)
    values, known = bounds_of(stream.column(name))
    return values, np.ones(len(values), bool) if known is None else known


def _keep(task: Task, step: Current, parts: list[tuple[pa.Table, Mask, Int64, bool]]) -> None:
    kind = step.pending.schema.field(EMIT_AT).type
    events = []
    for rows, which, times, leaves in parts:
        chosen = np.flatnonzero(which)
        event = take(rows, chosen)
        event = event.append_column(EMIT_AT, as_column(times[chosen], kind))
        events.append(event.append_column(LEAVES, pa.array(np.full(len(chosen), leaves))))
    pending = contiguous(events)
    if pending.num_rows:
        hashed, _ = partition_hashes(pending, step.pending.key)
        keep_pending(task, pending.append_column(HASH, pa.array(hashed)), step.pending)


def _due(task: Task, step: Current) -> list[pa.Table]:
    """Return the rows that enter or leave between the clocks of two epochs."""
    since, now = task.clock.emitted_up_to.get(step.pending.id, LEAST), task.clock.now
    parts = []
    for ref in task.refs(step.pending.id, after=False):
        if not lies_in(ref, EMIT_AT, since, now):
            continue
        run = read_run(task.store, ref)
        times = times_of(run, EMIT_AT)
        run = take(run, np.flatnonzero((times > since) & (times <= now)))
        sign = np.where(np.asarray(single_chunk(run.column(LEAVES))), -1, 1)
        parts.append(replaced(run.select(_names(step)), DIFF, sign * diffs(run)))
    return parts

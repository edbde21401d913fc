"""Hold: emit the changes of a view that are due, and keep the others pending.

Algebra: the view is σ(emit_at ≤ emitted_up_to)(relation). A change whose time is reached is emitted at once; any other
is pending. Pending changes that cancel each other are never emitted. A row without a time is emitted at once. Cost:
pending changes are written once, in time segments; changes that become due are read from the runs whose span contains
them (`runtime.scan`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.ir.logical import EMIT_AT, GATE
from rejoinder.kernels.arrow.columns import HASH, numbers, replaced, take, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.ordered import LEAST, as_column
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.steps import Hold
from rejoinder.runtime.steps.arrange import FAN
from rejoinder.runtime.steps.emit import write_changes
from rejoinder.runtime.task import Task
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.run import write_run
from rejoinder.store.runs.spine import Compaction, level_of
from rejoinder.store.runs.time_segments import segments
from rejoinder.store.runs.time_values import NO_TIME, times_of


def hold(task: Task, step: Hold) -> None:
    """Run the step."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    if step.interval:
        tick = -(-task.clock.now // step.interval) * step.interval
        kind = step.pending.schema.field(EMIT_AT).type
        stream = replaced(stream, EMIT_AT, as_column(np.full(stream.num_rows, tick), kind))
    if GATE in stream.column_names:
        stream = take(stream, np.flatnonzero(numbers(stream, GATE) == step.gate))
    stream = consolidate(stream)
    times = times_of(stream, EMIT_AT)
    due = (times == NO_TIME) | (times <= task.clock.emitted_up_to.get(step.pending.id, LEAST))
    write_changes(task, step.view, take(without(stream, [EMIT_AT, GATE, HASH]), np.flatnonzero(due)))
    keep_pending(task, take(stream, np.flatnonzero(~due)), step.pending, step.times)


def keep_pending(task: Task, pending: pa.Table, arrangement: Arrangement, times: tuple[str, ...] = ()) -> None:
    """Add pending rows to their arrangement, in time segments."""
    emitted_up_to = task.clock.emitted_up_to.get(arrangement.id, LEAST)
    compaction = Compaction(FAN, expiry=Expiry.below(EMIT_AT, emitted_up_to + 1), times=times)
    for segment, part in segments(sorted_by_hash(pending), EMIT_AT):
        ref = write_run(
            task.store,
            part,
            epoch=task.epoch,
            level=level_of(part.num_rows, FAN),
            bounds=task.bounds,
            segment=segment,
            times=compaction.spanned,
        )
        task.arranged.setdefault(arrangement.id, []).append(ref)
    task.compactions[arrangement.id] = compaction

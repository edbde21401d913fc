"""Arrange: add a stream to an arrangement as a new run, and keep the spine in shape at the end of the round."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.errors import MissingRow
from rejoinder.ir.source_variants import source_of
from rejoinder.kernels.arrow.columns import DIFF, HASH, contiguous, diffs, hashes, take, without
from rejoinder.kernels.arrow.consolidate import consolidate, consolidate_groups
from rejoinder.kernels.arrow.ordered import Ordered, bounds_of, rows_at, sorted_by_hash_and_value
from rejoinder.kernels.arrow.probe import match
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.kernels.duckdb.row_errors import possible
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.steps import Arrange
from rejoinder.runtime.task import Task, expiry_of, partition_hashes
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.run import write_run
from rejoinder.store.runs.spine import Compaction, Spine, insert, level_of, maintain

FAN = 8


def arrange(task: Task, step: Arrange) -> None:
    """Run the step: write the stream's net change as a run that later lookups of this epoch can see."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    if HASH not in stream.column_names:
        keys, _ = partition_hashes(stream, step.arrangement.key)
        stream = stream.append_column(HASH, pa.array(keys))
    if step.retention is not None and step.retention.condition is not None:
        # a row on which the condition fails may be met: it is up to the lookup to say so
        stream = possible(stream, step.retention.condition)
    order = step.arrangement.order
    stream = sorted_by_hash(stream) if order is None else sorted_by_hash_and_value(stream, order)
    stream = consolidate_groups(stream, hashes(stream))
    if step.retention is not None:
        stream = expiry_of(step.retention, {}).drop_expired(stream)  # what nobody ever asks for, as it has no time
    if not stream.num_rows:
        return
    expiry = None if step.retention is None else expiry_of(step.retention, task.clock.watermarks)
    if step.check:
        check_retractions(task, stream, step.arrangement, expiry)
    # What may be forgotten already can be met within its epoch; its run is over by itself at the end of it.
    parts = [stream] if expiry is None else expiry.split(stream)
    how = Compaction(FAN, order=order, expiry=expiry, times=step.times)
    task.arranged[step.arrangement.id] = [
        write_run(
            task.store,
            part,
            epoch=task.epoch,
            level=level_of(part.num_rows, FAN),
            bounds=task.bounds,
            times=how.spanned,
        )
        for part in parts
    ]
    task.compactions[step.arrangement.id] = how


def settle(task: Task) -> None:
    """At the end of a round: put the new runs into their spines and merge as far as the credit goes."""
    for name, refs in task.arranged.items():
        spine = task.before.get(name, Spine())
        for ref in refs:
            spine = insert(spine, ref)
        how = task.compactions.get(name, Compaction(FAN))
        task.report.spines[name] = maintain(task.store, spine, how, epoch=task.epoch, bounds=task.bounds)
    task.arranged.clear()


def check_retractions(task: Task, stream: pa.Table, arrangement: Arrangement, expiry: Expiry | None) -> None:
    """Refuse a retraction without a row to retract.

    Expired rows are not checked: they may be on disk or not, and a retraction may be there without its row.
    Cost follows the rows of the keys that are retracted; with an order column, the rows of equal order values.
    """
    negative = np.flatnonzero(diffs(stream) < 0)
    if not len(negative):
        return
    keys = hashes(stream)[negative]
    parts = [take(stream, np.flatnonzero(np.isin(hashes(stream), keys)))]
    for run in task.runs(arrangement.id, after=False):
        if arrangement.order is None:
            _, right = match(np.unique(keys), hashes(run))
        else:
            values, known = bounds_of(stream.column(arrangement.order).take(pa.array(negative)))
            right = rows_at(keys, Ordered.of(run, arrangement.order), values, known)
        if len(right):
            parts.append(take(run, right))
    total = consolidate(contiguous(parts))
    total = total if expiry is None else expiry.drop_expired(total)
    missing = np.flatnonzero(diffs(total) < 0)
    if len(missing):
        row = without(take(total, missing[:1]), [HASH, DIFF]).to_pylist()[0]
        raise MissingRow(
            f"a row is deleted from `{source_of(arrangement.relation)}` that is not there",
            detail=f"{len(missing)} such row(s) in this epoch and bucket",
            values=f"row {row}",
            hint="a changelog must insert a row before it deletes it, with equal values in every column; "
            "if rows are replaced by key, declare the source with CREATE TABLE and a PRIMARY KEY",
        )

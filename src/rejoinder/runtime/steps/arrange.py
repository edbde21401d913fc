"""Arrange: add a stream to an arrangement as a new run, and maintain the spine at the end of the round."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.errors import MissingRow
from rejoinder.ir.identities import source_of
from rejoinder.kernels.arrow.columns import DIFF, HASH, contiguous, diffs, hashes, take, with_payload, without
from rejoinder.kernels.arrow.consolidate import consolidate, consolidate_groups
from rejoinder.kernels.arrow.ordered import Ordered, bounds_of, rows_at, sorted_by_hash_and_value
from rejoinder.kernels.arrow.probe import match
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.kernels.duckdb.row_errors import possible
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.steps import Arrange
from rejoinder.runtime.task import Task, expiry_of, key_columns, partition_hashes, valid_keys
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
        # A row on which the condition fails may still match; the lookup reports the failure.
        stream = possible(stream, step.retention.condition)
    if step.arrangement.is_lean:
        stream = _found_by_lookups(stream, step.arrangement)
    order = step.arrangement.order
    stream = sorted_by_hash(stream) if order is None else sorted_by_hash_and_value(stream, order)
    stream = consolidate_groups(stream, hashes(stream))
    if step.retention is not None:
        stream = expiry_of(step.retention, {}).drop_expired(stream)  # rows with NULL, if they are never needed
    if not stream.num_rows:
        return
    expiry = None if step.retention is None else expiry_of(step.retention, task.clock.watermarks)
    if step.check:
        check_retractions(task, stream, step.arrangement, expiry)
    # Rows that have expired already can still match within this epoch. In a run of their own they are dropped after it.
    parts = [stream] if expiry is None else expiry.split(stream)
    columns = tuple(step.arrangement.schema.names) if step.arrangement.is_lean else None
    compaction = Compaction(FAN, order=order, expiry=expiry, times=step.times, columns=columns)
    task.arranged[step.arrangement.id] = [
        write_run(
            task.store,
            part,
            epoch=task.epoch,
            level=level_of(part.num_rows, FAN),
            bounds=task.bounds,
            times=compaction.spanned,
        )
        for part in parts
    ]
    task.compactions[step.arrangement.id] = compaction


def _found_by_lookups(stream: pa.Table, arrangement: Arrangement) -> pa.Table:
    """Return the columns and rows of a lean arrangement: a row whose key matches nothing is not stored."""
    valid = valid_keys(key_columns(stream, arrangement.key), arrangement.key)
    stream = with_payload(stream, arrangement.schema.names)
    return stream if valid is None else take(stream, np.flatnonzero(valid))


def insert_runs(task: Task) -> None:
    """At the end of a round: insert the new runs into their spines and compact as far as the credit goes."""
    for name, refs in task.arranged.items():
        spine = task.before.get(name, Spine())
        for ref in refs:
            spine = insert(spine, ref)
        compaction = task.compactions.get(name, Compaction(FAN))
        task.report.spines[name] = maintain(task.store, spine, compaction, epoch=task.epoch, bounds=task.bounds)
    task.arranged.clear()


def check_retractions(task: Task, stream: pa.Table, arrangement: Arrangement, expiry: Expiry | None) -> None:
    """Raise `MissingRow` for a retraction without a row to retract.

    Expired rows are not checked: they may or may not be on disk, and a retraction may be without its row. Cost follows
    the rows of the retracted keys; with an order column, only those with equal order values.
    """
    negative = np.flatnonzero(diffs(stream) < 0)
    if not len(negative):
        return
    keys = hashes(stream)[negative]
    parts = [take(stream, np.flatnonzero(np.isin(hashes(stream), keys)))]
    for run in task.runs(arrangement, after=False):
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
            f"a deleted row does not exist in `{source_of(arrangement.relation)}`",
            detail=f"{len(missing)} such row(s) in this epoch and bucket",
            values=f"row {row}",
            hint="a changelog must insert a row before it deletes it, with equal values in every column; "
            "if rows replace each other by key, declare the source with CREATE TABLE and a PRIMARY KEY",
        )

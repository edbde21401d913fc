"""Aggregate: one row per group, maintained incrementally.

Algebra: output = −(old row) + (new row) of every changed group, nothing where both are equal. Counts and sums of the
new row are those of the old one plus those of the delta. The minimum is the smaller of the old one and the new values,
unless the old one is retracted: then the values of the group are read again, which is the only case that costs more
than the change. A group without rows has no row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.ir.user_functions import UserFunction
from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64, contiguous, diffs, hashes, replaced, single_chunk, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.probe import match
from rejoinder.kernels.sums.accumulate import count_rows, extreme_rows, ranked, taken
from rejoinder.kernels.user_functions.group_states import changed_states
from rejoinder.plan.blocks.accumulators import ORDERED, ROWS, Accumulator
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.steps import Aggregate
from rejoinder.runtime.steps.groups.group_changes import GroupChange, GroupsBefore
from rejoinder.runtime.steps.groups.group_sums import summed
from rejoinder.runtime.steps.groups.ordered_values import ordered_values
from rejoinder.runtime.task import Task, expiry_of, partition_hashes


def aggregate(task: Task, step: Aggregate) -> None:
    """Run the step; the output stream carries `__hash` of the group's key."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    is_called = any(accumulator.user is not None for accumulator in step.accumulators)
    if step.values is not None or step.order is not None or step.whole or is_called:
        stream = consolidate(stream)  # a value that is inserted and retracted in one epoch must not count as minimum
        if not stream.num_rows:
            return
    delta = _grouped(stream, step)
    old = _before(task, delta.keys, step)
    columns = {name: single_chunk(delta.keys.column(name)) for name in step.keys}
    counts = np.asarray(pc.fill_null(old.column(ROWS), 0)) + count_rows(None, diffs(delta.rows), delta.starts)
    columns[ROWS] = pa.array(counts)
    is_stale = np.zeros(len(counts), bool)
    for accumulator in step.accumulators:
        if accumulator.function in ("min", "max"):
            columns[accumulator.name], is_retracted = _extreme(delta, old, accumulator)
            is_stale |= is_retracted & (counts != 0)
        elif accumulator.function == "single":
            columns[accumulator.name] = _single(delta, old, accumulator)
        elif accumulator.user is not None:
            columns |= _user_states(delta, old, accumulator, accumulator.user, counts != 0)
        elif accumulator.function not in ORDERED:
            columns |= summed(delta, old, accumulator, step, columns)
    if is_stale.any():
        columns |= _recomputed(task, delta, step, np.flatnonzero(is_stale), columns)
    if step.order is not None:
        columns |= ordered_values(task, delta, old, step, columns)
    columns[HASH] = single_chunk(delta.keys.column(HASH))
    new = pa.table(columns).select([*step.arrangement.schema.names, HASH])
    new = take(new, np.flatnonzero(counts))
    change = consolidate(contiguous([new, replaced(old.rows.select(new.column_names), DIFF, -diffs(old.rows))]))
    if change.num_rows:
        task.streams[step.output] = change


def _grouped(stream: pa.Table, step: Aggregate) -> GroupChange:
    if HASH not in stream.column_names:
        stream = stream.append_column(HASH, pa.array(partition_hashes(stream, step.arrangement.key)[0]))
    for name in step.keys:  # -0.0 and 0.0 are one group, whose key is 0.0
        column = single_chunk(stream.column(name))
        if pa.types.is_floating(column.type):
            stream = replaced(stream, name, pc.add(column, pa.scalar(0.0, column.type)))
    groups = group_rows(stream, step.keys)
    order = np.argsort(groups.group_of, kind="stable")
    group_of = groups.group_of[order]
    starts = np.searchsorted(group_of, np.arange(len(groups.starts)))
    rows = take(stream, order)
    return GroupChange(rows, group_of, starts, take(rows.select([*step.keys, HASH]), starts))


def _before(task: Task, keys: pa.Table, step: Aggregate) -> GroupsBefore:
    """Return the old row of each group."""
    schema = step.arrangement.schema.append(pa.field(HASH, pa.uint64()))
    rows = schema.empty_table() if step.whole else _rows_before(task, keys, step.arrangement)
    if step.expiring is not None:
        # a row and its retraction may be dropped from disk at different times, but expire together
        rows = expiry_of(step.expiring, task.clock.watermarks).drop_expired(rows)
    if rows.num_rows:
        rows = consolidate(rows)
    row_of = np.full(keys.num_rows, -1, np.int64)
    group_of = _groups_of(rows, keys, step)
    rows, group_of = take(rows, np.flatnonzero(group_of >= 0)), group_of[group_of >= 0]
    row_of[group_of] = np.arange(len(group_of))
    return GroupsBefore(rows, row_of)


def _rows_before(task: Task, keys: pa.Table, arrangement: Arrangement) -> pa.Table:
    """Return the rows of an arrangement before this epoch whose hash is that of a key."""
    needles = np.unique(hashes(keys))
    parts = [arrangement.schema.append(pa.field(HASH, pa.uint64())).empty_table()]
    for run in task.runs(arrangement, after=False):
        _, right = match(needles, hashes(run))
        if len(right):
            parts.append(take(run, right))
    return contiguous(parts)


def _groups_of(rows: pa.Table, keys: pa.Table, step: Aggregate) -> Int64:
    """Return the group number of each row among the keys; −1 for a row of another group with an equal hash."""
    if not rows.num_rows:
        return np.zeros(0, np.int64)
    names = list(step.keys)
    if not names:
        return np.zeros(rows.num_rows, np.int64)
    both = group_rows(contiguous([keys.select(names), rows.select(names)]), names)
    number = np.full(len(both.starts), -1, np.int64)
    number[both.group_of[: keys.num_rows]] = np.arange(keys.num_rows)
    return number[both.group_of[keys.num_rows :]]


def _single(delta: GroupChange, old: GroupsBefore, accumulator: Accumulator) -> pa.Array:
    """Return the value that was inserted, or the old one unless it was retracted."""
    values, before = delta.column(accumulator.argument), old.column(accumulator.name)
    multiplicity, groups = diffs(delta.rows), len(before)
    valid = np.asarray(values.is_valid())
    row_of = len(values) + np.arange(groups)
    row_of[delta.group_of[valid & (multiplicity < 0)]] = -1
    inserted = np.flatnonzero(valid & (multiplicity > 0))
    row_of[delta.group_of[inserted]] = inserted
    return taken(pa.concat_arrays([values, before.cast(values.type)]), row_of)


def _user_states(
    delta: GroupChange, old: GroupsBefore, accumulator: Accumulator, function: UserFunction, has_rows: Mask
) -> dict[str, pa.Array]:
    """Return the values of an aggregate of the user, and the states to keep; NULL for groups without rows."""
    (kept,) = accumulator.hidden
    changes = delta.column(accumulator.argument), diffs(delta.rows), delta.starts
    values, states = changed_states(function, old.column(kept).to_pylist(), *changes, has_rows)
    return {accumulator.name: values, kept: states}


def _extreme(delta: GroupChange, old: GroupsBefore, accumulator: Accumulator) -> tuple[pa.Array, Mask]:
    """Return the minimum or maximum of the old one and the new values, and the groups whose old one was retracted."""
    largest = accumulator.function == "max"
    values, before = delta.column(accumulator.argument), old.column(accumulator.name)
    multiplicity = diffs(delta.rows)
    ranks, old_ranks = ranked(values, before)
    groups = len(before)
    candidates = np.concatenate([np.where(multiplicity > 0, ranks, 0), old_ranks])
    owner = np.concatenate([delta.group_of, np.arange(groups)])
    best = extreme_rows(candidates, owner, groups, largest=largest)
    retracted = np.where(multiplicity < 0, ranks, 0)
    lost = extreme_rows(retracted, delta.group_of, groups, largest=largest)
    rank_of_lost = np.where(lost >= 0, retracted[lost], 0) if len(retracted) else np.zeros(groups, np.int64)
    sign = -1 if largest else 1
    # Rows of the delta come first among equals, so if the old one is best, no inserted value equals it.
    is_retracted = (lost >= 0) & (best >= len(values)) & (sign * rank_of_lost <= sign * old_ranks)
    return taken(pa.concat_arrays([values, before]), best), is_retracted


def _recomputed(
    task: Task, delta: GroupChange, step: Aggregate, groups: Int64, columns: dict[str, pa.Array]
) -> dict[str, pa.Array]:
    """Return the columns of minima and maxima, recomputed for `groups` from all their values."""
    assert step.values is not None, "an append-only relation has retracted a row"
    keys = take(delta.keys, groups)
    before = _rows_before(task, keys, step.values)
    changed = take(delta.rows, np.flatnonzero(np.isin(delta.group_of, groups)))
    rows = consolidate(contiguous([before, changed.select([n for n in changed.column_names if n != HASH] + [HASH])]))
    group_of = _groups_of(rows, keys, step)
    kept = np.flatnonzero((group_of >= 0) & (diffs(rows) > 0))
    rows, group_of = take(rows, kept), group_of[kept]
    result = {}
    for accumulator in step.accumulators:
        if accumulator.function not in ("min", "max"):
            continue
        values = single_chunk(rows.column(accumulator.argument))
        (ranks,) = ranked(values)
        best = extreme_rows(ranks, group_of, len(groups), largest=accumulator.function == "max")
        column = columns[accumulator.name]
        place = np.arange(len(column))
        place[groups] = len(place) + np.arange(len(groups))
        result[accumulator.name] = pa.concat_arrays([column, taken(values, best)]).take(pa.array(place))
    return result

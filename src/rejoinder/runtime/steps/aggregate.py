"""Aggregate: one row per group, kept up to date by what changes.

Algebra: output = −(old row) + (new row) of every group that the delta touches, nothing where both are equal. Counts and
sums of the new row are those of the old one plus those of the delta. The smallest value is the smaller of the old one
and the new ones, unless the old one is taken away: then the group's values are read again, which is the only
thing that costs more than the change. A group without rows has no row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.errors import EvaluationError
from rejoinder.kernels.arrow.columns import (
    DIFF,
    HASH,
    Int64,
    contiguous,
    diffs,
    hashes,
    replaced,
    single_chunk,
    take,
    without,
)
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.probe import match
from rejoinder.kernels.sums.accumulate import count_rows, extreme_rows, float_values, ranked, sum_exact, taken
from rejoinder.kernels.sums.float_sums import KEPT, sum_floats
from rejoinder.plan.blocks.accumulators import ROWS, Accumulator
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.steps import Aggregate
from rejoinder.runtime.task import Task, partition_hashes


@dataclass(frozen=True)
class _Delta:
    """The changed rows, ordered by group: `group_of` each row, `starts` of each group, `keys` one row per group."""

    rows: pa.Table
    group_of: Int64
    starts: Int64
    keys: pa.Table

    def column(self, name: str) -> pa.Array:
        """A column of the rows."""
        return single_chunk(self.rows.column(name))


@dataclass(frozen=True)
class _Old:
    """The rows of the touched groups before this epoch; `row_of` each group, −1 for a new one."""

    rows: pa.Table
    row_of: Int64

    def column(self, name: str) -> pa.Array:
        """A column of the old rows by group, NULL for new ones."""
        return taken(single_chunk(self.rows.column(name)), self.row_of)


def aggregate(task: Task, step: Aggregate) -> None:
    """Run the step; the output stream carries `__hash` of the group's key."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    if step.values is not None or step.whole:
        stream = consolidate(stream)  # what comes and goes in one epoch says nothing about the smallest value
        if not stream.num_rows:
            return
    delta = _grouped(stream, step)
    old = _before(task, delta.keys, step)
    columns = {name: single_chunk(delta.keys.column(name)) for name in step.keys}
    counts = np.asarray(pc.fill_null(old.column(ROWS), 0)) + count_rows(None, diffs(delta.rows), delta.starts)
    columns[ROWS] = pa.array(counts)
    doubtful = np.zeros(len(counts), bool)
    for each in step.accumulators:
        if each.function in ("min", "max"):
            columns[each.name], unsure = _extreme(delta, old, each)
            doubtful |= unsure & (counts != 0)
        else:
            columns |= _linear(delta, old, each, step)
    if doubtful.any():
        columns |= _recomputed(task, delta, step, np.flatnonzero(doubtful), columns)
    columns[HASH] = single_chunk(delta.keys.column(HASH))
    new = pa.table(columns).select([*step.arrangement.schema.names, HASH])
    new = take(new, np.flatnonzero(counts))
    change = consolidate(contiguous([new, replaced(old.rows.select(new.column_names), DIFF, -diffs(old.rows))]))
    if change.num_rows:
        task.streams[step.output] = change


def _grouped(stream: pa.Table, step: Aggregate) -> _Delta:
    if HASH not in stream.column_names:
        stream = stream.append_column(HASH, pa.array(partition_hashes(stream, step.arrangement.key)[0]))
    for name in step.keys:  # -0.0 and 0.0 are one group, which is shown as 0.0
        column = single_chunk(stream.column(name))
        if pa.types.is_floating(column.type):
            stream = replaced(stream, name, pc.add(column, pa.scalar(0.0, column.type)))
    groups = group_rows(stream, step.keys)
    order = np.argsort(groups.group_of, kind="stable")
    group_of = groups.group_of[order]
    starts = np.searchsorted(group_of, np.arange(len(groups.starts)))
    rows = take(stream, order)
    return _Delta(rows, group_of, starts, take(rows.select([*step.keys, HASH]), starts))


def _before(task: Task, keys: pa.Table, step: Aggregate) -> _Old:
    """The old row of each group."""
    schema = step.arrangement.schema.append(pa.field(HASH, pa.uint64()))
    rows = schema.empty_table() if step.whole else _found(task, keys, step.arrangement)
    if rows.num_rows:
        rows = consolidate(rows)
    row_of = np.full(keys.num_rows, -1, np.int64)
    group_of = _groups_of(rows, keys, step)
    rows, group_of = take(rows, np.flatnonzero(group_of >= 0)), group_of[group_of >= 0]
    row_of[group_of] = np.arange(len(group_of))
    return _Old(rows, row_of)


def _found(task: Task, keys: pa.Table, arrangement: Arrangement) -> pa.Table:
    """The rows of an arrangement before this epoch whose hash is that of a key."""
    wanted = np.unique(hashes(keys))
    parts = [arrangement.schema.append(pa.field(HASH, pa.uint64())).empty_table()]
    for run in task.runs(arrangement.id, after=False):
        _, right = match(wanted, hashes(run))
        if len(right):
            parts.append(take(run, right))
    return contiguous(parts)


def _groups_of(rows: pa.Table, keys: pa.Table, step: Aggregate) -> Int64:
    """The number of each row's group among the keys; −1 if it has none there."""
    if not rows.num_rows:
        return np.zeros(0, np.int64)
    names = list(step.keys)
    if not names:
        return np.zeros(rows.num_rows, np.int64)
    both = group_rows(contiguous([keys.select(names), rows.select(names)]), names)
    number = np.full(len(both.starts), -1, np.int64)
    number[both.group_of[: keys.num_rows]] = np.arange(keys.num_rows)
    return number[both.group_of[keys.num_rows :]]


def _linear(delta: _Delta, old: _Old, each: Accumulator, step: Aggregate) -> dict[str, pa.Array]:
    """A count or a sum."""
    values, multiplicity, before = delta.column(each.argument), diffs(delta.rows), old.column(each.name)
    if each.function == "count":
        change = count_rows(values, multiplicity, delta.starts)
        return {each.name: pa.array(np.asarray(pc.fill_null(before, 0)) + change)}
    if each.digits is not None:
        numbers, valid = float_values(values)
        multiplicity = multiplicity if valid is None else np.where(valid, multiplicity, 0)
        kept, sums = sum_floats(old.column(each.digits).cast(KEPT), numbers, multiplicity, delta.starts)
        return {each.name: pa.array(sums), each.digits: kept}
    sums, too_large = sum_exact(before, values, multiplicity, delta.starts)
    if too_large.any():
        raise _overflow(delta, each, step, int(np.flatnonzero(too_large)[0]))
    return {each.name: sums}


def _overflow(delta: _Delta, each: Accumulator, step: Aggregate, group: int) -> EvaluationError:
    key = without(take(delta.keys, np.array([group])), [HASH]).to_pylist()[0]
    views = " and ".join(f"`{view}`" for view in step.views)
    return EvaluationError(
        f"`{each.text}` overflows in view {views}",
        detail=f"{'a group' if key else 'the whole relation'}: the sum does not fit in {each.type}",
        values=f"group {tuple(key.values())!r}" if key else None,
        hint="sum a wider type: CAST the argument to DECIMAL(38, 0) or to DOUBLE",
    )


def _extreme(delta: _Delta, old: _Old, each: Accumulator) -> tuple[pa.Array, Mask]:
    """The extreme of the old one and of the new values; and for which groups the old one was taken away."""
    largest = each.function == "max"
    values, before = delta.column(each.argument), old.column(each.name)
    multiplicity = diffs(delta.rows)
    ranks, old_ranks = ranked(values, before)
    groups = len(before)
    candidates = np.concatenate([np.where(multiplicity > 0, ranks, 0), old_ranks])
    owner = np.concatenate([delta.group_of, np.arange(groups)])
    best = extreme_rows(candidates, owner, groups, largest=largest)
    gone = np.where(multiplicity < 0, ranks, 0)
    lost = extreme_rows(gone, delta.group_of, groups, largest=largest)
    rank_of_lost = np.where(lost >= 0, gone[lost], 0) if len(gone) else np.zeros(groups, np.int64)
    sign = -1 if largest else 1
    # rows of the delta come first among equals, so an old row that is best is beaten by none of them
    doubtful = (lost >= 0) & (best >= len(values)) & (sign * rank_of_lost <= sign * old_ranks)
    return taken(pa.concat_arrays([values, before]), best), doubtful


def _recomputed(
    task: Task, delta: _Delta, step: Aggregate, groups: Int64, columns: dict[str, pa.Array]
) -> dict[str, pa.Array]:
    """The extremes of groups from all their values, beside those of the other groups."""
    assert step.values is not None, "an append-only relation has taken a row back"
    keys = take(delta.keys, groups)
    found = _found(task, keys, step.values)
    touched = take(delta.rows, np.flatnonzero(np.isin(delta.group_of, groups)))
    rows = consolidate(contiguous([found, touched.select([n for n in touched.column_names if n != HASH] + [HASH])]))
    group_of = _groups_of(rows, keys, step)
    kept = np.flatnonzero((group_of >= 0) & (diffs(rows) > 0))
    rows, group_of = take(rows, kept), group_of[kept]
    result = {}
    for each in step.accumulators:
        if each.function not in ("min", "max"):
            continue
        values = single_chunk(rows.column(each.argument))
        (ranks,) = ranked(values)
        best = extreme_rows(ranks, group_of, len(groups), largest=each.function == "max")
        place = np.arange(len(columns[each.name]))
        place[groups] = len(place) + np.arange(len(groups))
        both = pa.concat_arrays([columns[each.name], taken(values, best)])
        result[each.name] = both.take(pa.array(place))
    return result

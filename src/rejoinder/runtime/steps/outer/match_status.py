"""MatchStatus: find the left rows of an outer, semi or anti join that gain their first match or lose their last one.

Algebra: for each left row, flip = [matches after > 0] − [matches before > 0]. A semi join outputs `flip`, an anti join
−flip, and a left join the changed pairs and −flip rows of padding. Only left rows that match a changed row can flip:
their matches before are looked up, those after follow from the change. The step has no other state.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import (
    DIFF,
    ERROR,
    HASH,
    SEQUENCE,
    Int64,
    contiguous,
    diffs,
    drop_unit_diffs,
    hashes,
    numbers,
    replaced,
    single_chunk,
    take,
    without,
)
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.kernels.duckdb.row_errors import marked, possible, satisfying, truths
from rejoinder.plan.physical.join_steps import MatchStatus
from rejoinder.runtime.matching.key_matching import Matching, changed, totals
from rejoinder.runtime.task import Task

ENTRY, CHANGE, OWN = "__entry", "__change", "__own"


def match_status(task: Task, step: MatchStatus) -> None:
    """Run the step."""
    stream = changed(task, step)
    if stream is not None and step.filter is not None:
        stream = possible(stream, step.filter)
    pairs, failed = (None, None) if stream is None or not stream.num_rows else _pairs(task, stream, step)
    parts = []
    if pairs is not None and pairs.num_rows:
        parts.append(_unmatched(task, pairs, step))
        if step.mode == "left":
            parts.append(_matched(pairs, step))
    if failed is not None:
        parts.append(_failed(failed, step))
    if not parts:
        return
    result = contiguous([part for part in parts if part.num_rows] or parts[:1])
    if result.num_rows:
        task.streams[step.output] = drop_unit_diffs(result)


def _pairs(task: Task, stream: pa.Table, step: MatchStatus) -> tuple[pa.Table | None, pa.Table | None]:
    """Return the pairs of changed rows and left rows, and the pairs on which the condition fails, with their error.

    `ENTRY` identifies a left row by its run and position.
    """
    runs = task.runs(step.left, after=step.after)
    matching = Matching(stream, runs, step.arrangement.key, step.left, task.max_pairs, step.user)
    tables = []
    matching, positions = matching.limited()
    stream = matching.stream
    for number, (run, (changed_rows, left_rows)) in enumerate(zip(matching.runs, positions, strict=True)):
        if not len(changed_rows):
            continue
        columns = {i: single_chunk(stream.column(name)).take(pa.array(changed_rows)) for name, i in step.paired}
        columns |= {i: single_chunk(run.column(name)).take(pa.array(left_rows)) for name, i in step.fetched}
        columns[HASH] = single_chunk(stream.column(HASH)).take(pa.array(changed_rows))
        columns[ENTRY] = pa.array(left_rows + (number << 40))
        columns[CHANGE] = pa.array(diffs(stream)[changed_rows])
        columns[OWN] = pa.array(diffs(run)[left_rows])
        tables.append(pa.table(columns))
    if not tables:
        return None, None
    pairs = contiguous(tables)
    if step.restriction is not None:
        mask, errors = truths(pairs, step.restriction)
        pairs = take(pairs if errors is None else marked(pairs, errors), np.flatnonzero(mask))
    return (pairs, None) if step.condition is None else satisfying(pairs, step.condition)


def _matched(pairs: pa.Table, step: MatchStatus) -> pa.Table:
    """Return the changed pairs."""
    rows = pairs.select([*(i for _, i in step.fetched), *step.outputs, *_mark(pairs)])
    if step.present is not None:
        rows = rows.append_column(step.present, pa.array(np.ones(rows.num_rows, bool)))
    return replaced(rows, DIFF, numbers(pairs, OWN) * numbers(pairs, CHANGE))


def _mark(pairs: pa.Table) -> list[str]:
    return [ERROR] if ERROR in pairs.column_names else []


def _failed(pairs: pa.Table, step: MatchStatus) -> pa.Table:
    """Return the changed pairs on which the condition fails: they are not matches."""
    rows = _matched(pairs, step)
    if step.mode != "left":
        rows = without(rows, [*step.outputs, *([] if step.present is None else [step.present])])
    return rows if step.fetched else replaced(rows, HASH, hashes(pairs))


def _unmatched(task: Task, pairs: pa.Table, step: MatchStatus) -> pa.Table:
    """Return the left rows whose match status changes, in mode `left` as padding."""
    _, first, group = np.unique(numbers(pairs, ENTRY), return_index=True, return_inverse=True)
    change = np.bincount(group, weights=numbers(pairs, CHANGE), minlength=len(first)).astype(np.int64)
    names = [i for _, i in step.fetched]
    rows = replaced(take(pairs.select([*names, HASH, OWN, *_mark(pairs)]), first), CHANGE, change)
    rows = sorted_by_hash(rows)
    before = _matches_before(task, rows, step)
    flip = (before + numbers(rows, CHANGE) > 0).astype(np.int64) - (before > 0).astype(np.int64)
    flipped = np.flatnonzero(flip)
    sign = numbers(rows, OWN) * flip * (1 if step.mode == "semi" else -1)
    result = take(rows.select([*(names or [HASH]), *_mark(rows)]), flipped)
    if step.mode == "left":
        kinds = {i: step.arrangement.schema.field(name).type for name, i in step.paired}
        for i in step.outputs:
            result = result.append_column(i, pa.nulls(result.num_rows, kinds[i]))
        if step.present is not None:
            result = result.append_column(step.present, pa.nulls(result.num_rows, pa.bool_()))
    return replaced(result, DIFF, sign[flipped])


def _matches_before(task: Task, rows: pa.Table, step: MatchStatus) -> Int64:
    """Return the number of matches of each left row before the epoch."""
    runs = task.runs(step.arrangement, after=False)
    numbered = replaced(rows.drop_columns([OWN, CHANGE]), SEQUENCE, np.arange(rows.num_rows))
    carried = (SEQUENCE, *(i for _, i in step.fetched))
    pairs = Matching(numbered, runs, step.key, step.arrangement, task.max_pairs, step.user).pairs(carried, step.paired)
    if pairs is not None and step.condition is not None:
        pairs, _ = satisfying(pairs, step.condition)
    return totals(pairs, rows.num_rows)

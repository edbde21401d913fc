"""Enrich: what a function of the user's answers about each row; asked when a row comes, remembered while it is there.

Algebra: output = change of each row, with the answer that it has. A row that was there before keeps its answer, however
many copies come or go; a row that is new is asked about, once for all its copies. Calls are made again if the epoch is
run again, since nothing of it was committed. Cost: the calls; and, for what is remembered, the changed rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.errors import FunctionFailed, MissingRow
from rejoinder.kernels.arrow.columns import (
    DIFF,
    HASH,
    Int64,
    contiguous,
    diffs,
    hashes,
    numbers,
    payload_names,
    replaced,
    single_chunk,
    take,
    without,
)
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.equality import not_distinct
from rejoinder.kernels.arrow.probe import match
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.plan.physical.steps import Enrich
from rejoinder.runtime.python_function import ask
from rejoinder.runtime.task import Task
from rejoinder.store.runs.run import read_run

ROW = "row"


def enrich(task: Task, step: Enrich) -> None:
    """Run the step. The arrangement itself is kept by an Arrange step on its output."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    changed = sorted_by_hash(consolidate(stream))
    names = payload_names(changed)
    known, row_of = (None, np.zeros(0, np.int64)) if step.whole else remembered(task, changed, step)
    is_known = np.zeros(changed.num_rows, bool)
    is_known[row_of] = True
    change = diffs(changed)
    if (change[~is_known] < 0).any():
        row = take(changed.select(names), np.flatnonzero(~is_known & (change < 0))[:1]).to_pylist()[0]
        raise MissingRow(
            f"a row is taken back that `{step.function.name}` was never asked about",
            values=f"row {dict(zip(step.arguments.names, row.values(), strict=True))}",
            hint="rows are taken back with equal values in every column, and while they are kept",
        )
    parts = []
    if known is not None:
        parts.append(_with_answers(take(changed, row_of), known, step))
    new = np.flatnonzero(~is_known)
    if len(new):
        rows = take(changed, new)
        parts.append(_with_answers(rows, _asked(rows.select(names), step), step))
    if parts:
        task.streams[step.output] = sorted_by_hash(contiguous(parts))


def remembered(task: Task, changed: pa.Table, step: Enrich) -> tuple[pa.Table | None, Int64]:
    """The answers of rows that were there before this epoch, and which of the changed rows each belongs to."""
    names = payload_names(changed)
    parts = []
    for ref in task.refs(step.arrangement.id, after=False):
        run = read_run(task.store, ref)
        left, right = match(hashes(changed), hashes(run))
        same = np.ones(len(left), bool)
        for name in names if len(left) else []:
            here = single_chunk(changed.column(name)).take(pa.array(left))
            there = single_chunk(run.column(name)).take(pa.array(right))
            same &= not_distinct(here, there)
        if same.any():
            parts.append(replaced(take(without(run, [HASH]), right[same]), ROW, left[same]))
    if not parts:
        return None, np.zeros(0, np.int64)
    # What came and went before cancels out; a row that is there has one answer, so one entry is left of it.
    present = consolidate(contiguous(parts))
    return present, numbers(present, ROW).astype(np.int64)


def _asked(rows: pa.Table, step: Enrich) -> pa.Table:
    try:
        answers = ask(step.function, rows.rename_columns(step.arguments.names), step.answers)
    except FunctionFailed as failure:
        listed = ", ".join(f"`{view}`" for view in step.views)
        raise FunctionFailed(
            failure.fact + (f", for {listed}" if listed else ""),
            detail=failure.detail,
            hint=failure.hint,
            values=failure.values,
        ) from failure.__cause__
    return answers.rename_columns(step.arrangement.schema.names[rows.num_columns :])


def _with_answers(rows: pa.Table, answers: pa.Table, step: Enrich) -> pa.Table:
    """Changed rows in the columns of the arrangement, with their diffs and hashes."""
    columns = [(rows if name in rows.column_names else answers).column(name) for name in step.arrangement.schema.names]
    whole = pa.Table.from_arrays(columns, schema=step.arrangement.schema)
    return replaced(replaced(whole, DIFF, diffs(rows)), HASH, hashes(rows))

"""Enrich: add the answer of a user function to each row; called when a row arrives, stored as long as the row.

Algebra: output = change of each row, with its answer. A row that existed before the epoch keeps its answer, however
many copies arrive or leave; for a new row the function is called once for all its copies. If the epoch is run again,
the calls are made again, since nothing was committed. Cost: the calls, and the changed rows to look up stored answers.
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
    """Run the step. An Arrange step on its output maintains the arrangement."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    changed = sorted_by_hash(consolidate(stream))
    names = payload_names(changed)
    stored, row_of = (None, np.zeros(0, np.int64)) if step.whole else stored_answers(task, changed, step)
    is_stored = np.zeros(changed.num_rows, bool)
    is_stored[row_of] = True
    change = diffs(changed)
    if (change[~is_stored] < 0).any():
        row = take(changed.select(names), np.flatnonzero(~is_stored & (change < 0))[:1]).to_pylist()[0]
        raise MissingRow(
            f"a retracted row has no stored answer of `{step.function.name}`",
            values=f"row {dict(zip(step.arguments.names, row.values(), strict=True))}",
            hint="retract a row with equal values in every column, and while it is retained",
        )
    parts = []
    if stored is not None:
        parts.append(_with_answers(take(changed, row_of), stored, step))
    new = np.flatnonzero(~is_stored)
    if len(new):
        rows = take(changed, new)
        parts.append(_with_answers(rows, _new_answers(rows.select(names), step), step))
    if parts:
        task.streams[step.output] = sorted_by_hash(contiguous(parts))


def stored_answers(task: Task, changed: pa.Table, step: Enrich) -> tuple[pa.Table | None, Int64]:
    """Return the answers of rows that existed before this epoch, and the number of the changed row of each."""
    names = payload_names(changed)
    parts = []
    for ref in task.refs(step.arrangement.id, after=False):
        run = read_run(task.store, ref)
        left, right = match(hashes(changed), hashes(run))
        same = np.ones(len(left), bool)
        for name in names if len(left) else []:
            new = single_chunk(changed.column(name)).take(pa.array(left))
            old = single_chunk(run.column(name)).take(pa.array(right))
            same &= not_distinct(new, old)
        if same.any():
            parts.append(replaced(take(without(run, [HASH]), right[same]), ROW, left[same]))
    if not parts:
        return None, np.zeros(0, np.int64)
    # Earlier inserts and retractions cancel out. An existing row has one answer, so one entry of it remains.
    present = consolidate(contiguous(parts))
    return present, numbers(present, ROW).astype(np.int64)


def _new_answers(rows: pa.Table, step: Enrich) -> pa.Table:
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
    """Return changed rows with their answers, in the columns of the arrangement, with diffs and hashes."""
    columns = [(rows if name in rows.column_names else answers).column(name) for name in step.arrangement.schema.names]
    whole = pa.Table.from_arrays(columns, schema=step.arrangement.schema)
    return replaced(replaced(whole, DIFF, diffs(rows)), HASH, hashes(rows))

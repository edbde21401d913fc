"""OnTime: rows that are not late pass; the others are noted, with what they missed.

A row of a source is late if one of its event times is below the watermark that was in force before this epoch, or is
NULL where a watermark is declared; a row of a union's branch, if it is below what the union had passed. Stateless; what
is late is counted, and goes on as rows of the `late` relation of each view that leaves it out; a row that is taken
back too late is in it as well, with `undo`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.errors import LateRow
from rejoinder.ir.catalog import LATE_SCHEMA
from rejoinder.kernels.arrow.columns import DIFF, RESERVED, contiguous, diffs, replaced, take, without
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.ordered import LEAST, as_column
from rejoinder.plan.physical.steps import OnTime
from rejoinder.runtime.row_json import as_json
from rejoinder.runtime.task import Task
from rejoinder.store.runs.time_values import NO_TIME, times_of
from rejoinder.watermarks.formula import value_of


def on_time(task: Task, step: OnTime) -> None:
    """Run the step."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    late = np.zeros(stream.num_rows, bool)
    notes: list[pa.Table] = []
    for column, promise in step.times:
        watermark = value_of(promise, task.clock.watermarks, LEAST)
        missed = _missed(stream, column, watermark, keeps_nulls=step.keeps_nulls) & ~late
        if missed.any():
            notes += _notes(task, take(stream, np.flatnonzero(missed)), column, watermark, step)
            late |= missed
    if notes:
        task.streams[step.late] = contiguous(notes)
    passed = stream if not late.any() else take(stream, np.flatnonzero(~late))
    if passed.num_rows:
        task.streams[step.output] = passed


def _missed(stream: pa.Table, column: str, watermark: int, *, keeps_nulls: bool) -> Mask:
    times = times_of(stream, column)
    missed: Mask = times < watermark
    return missed if keeps_nulls else missed | (times == NO_TIME)


def _notes(task: Task, rows: pa.Table, column: str, watermark: int, step: OnTime) -> list[pa.Table]:
    """Late rows as they are noted; none if the source says so, or a failure."""
    labels, kind = dict(step.labels), rows.schema.field(column).type
    plain = without(rows, RESERVED)
    plain = plain.rename_columns([labels.get(name, name) for name in plain.column_names])
    named = labels.get(column, column)
    if step.policy == "fail":
        raise LateRow(
            f"a row of `{step.name}` is late",
            detail=f"{rows.num_rows} such row(s); the watermark of `{named}` is {_shown(watermark, kind)}",
            values=f"row {plain.slice(0, 1).to_pylist()[0]}",
            hint="raise the delay of its WATERMARK, or keep late rows: OPTIONS (late 'keep')",
        )
    for view in step.views:
        task.report.count_late(view, step.name, rows.num_rows)
    if step.policy == "drop":
        return []
    times = times_of(rows, column)
    behind = pa.array(np.where(times == NO_TIME, 0, watermark) - times, pa.int64(), mask=times == NO_TIME)
    table = pa.table(
        {
            "input": pa.array([step.name] * rows.num_rows),
            "row": as_json(plain),
            "column": pa.array([named] * rows.num_rows),
            "watermark": pa.array([_shown(watermark, kind)] * rows.num_rows, pa.string()),
            "behind": behind,
            "undo": pa.array(diffs(rows) < 0),
        },
        schema=LATE_SCHEMA,
    )
    return [replaced(table, DIFF, np.abs(diffs(rows)))]


def _shown(watermark: int, kind: pa.DataType) -> str | None:
    if watermark == LEAST:
        return None
    value = as_column(np.array([watermark]), kind)
    if pa.types.is_timestamp(kind):
        return str(value.cast(pa.timestamp("us")).cast(pa.string())[0].as_py()).rstrip("0").rstrip(".")
    return str(value.cast(pa.string())[0].as_py())

"""OnTime: rows of a source that are not late pass; the others are noted, with what they missed.

A row is late if one of its event times is below the watermark that was in force before this epoch, or is NULL where a
watermark is declared. Stateless; what is late is written to the `late` relation of each view that leaves it out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.errors import LateRow
from rejoinder.kernels.columns import DIFF, HASH, SEQUENCE, diffs, replaced, take, without
from rejoinder.kernels.evaluate import Expression, project, quoted
from rejoinder.kernels.hashing import Mask
from rejoinder.kernels.ordered import as_column
from rejoinder.operators.stateless import write_changes
from rejoinder.operators.task import Task
from rejoinder.plan.catalog import LATE, LATE_SCHEMA, Source
from rejoinder.plan.physical import OnTime
from rejoinder.store.segments import TIMELESS, times_of


def on_time(task: Task, step: OnTime) -> None:
    """Run the step."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    watermarks = task.clock.watermarks.get(step.source.name, {})
    late = np.zeros(stream.num_rows, bool)
    for column in step.source.watermarks:
        missed = _missed(stream, column, watermarks.get(column)) & ~late
        if missed.any():
            _note(task, take(stream, np.flatnonzero(missed)), column, watermarks.get(column), step)
            late |= missed
    passed = stream if not late.any() else take(stream, np.flatnonzero(~late))
    if passed.num_rows:
        task.streams[step.output] = passed


def _missed(stream: pa.Table, column: str, watermark: int | None) -> Mask:
    times = times_of(stream, column)
    missed: Mask = times == TIMELESS
    return missed if watermark is None else missed | (times < watermark)


def _note(task: Task, rows: pa.Table, column: str, watermark: int | None, step: OnTime) -> None:
    """Write late rows down for every view that leaves them out; or fail, or drop them, if the source says so."""
    policy = step.source.options.get("late", "keep")
    plain = without(rows, [HASH, DIFF, SEQUENCE])
    if policy == "fail":
        raise LateRow(
            f"a row of `{step.source.name}` is late",
            detail=f"row {plain.slice(0, 1).to_pylist()[0]}; {rows.num_rows} such row(s); "
            f"the watermark of `{column}` is {_shown(watermark, column, step.source)}",
            hint="raise the delay of its WATERMARK, or keep late rows: OPTIONS (late 'keep')",
        )
    task.report.late[step.source.name] = task.report.late.get(step.source.name, 0) + rows.num_rows
    if policy == "drop":
        return
    times = times_of(rows, column)
    behind = pa.array((watermark or 0) - times, pa.int64(), mask=times == TIMELESS)
    table = pa.table(
        {
            "input": pa.array([step.source.name] * rows.num_rows),
            "row": project(plain, [("row", _as_json(plain))]).column("row"),
            "column": pa.array([column] * rows.num_rows),
            "watermark": pa.array([_shown(watermark, column, step.source)] * rows.num_rows, pa.string()),
            "behind": behind,
        },
        schema=LATE_SCHEMA,
    )
    for view in step.views:
        write_changes(task, view + LATE, replaced(table, DIFF, diffs(rows)))


def _as_json(rows: pa.Table) -> Expression:
    fields = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}': {quoted(name)}" for name in rows.column_names)
    return Expression(f"CAST(to_json({{{fields}}}) AS VARCHAR)", pa.string(), tuple(rows.column_names))


def _shown(watermark: int | None, column: str, source: Source) -> str | None:
    if watermark is None:
        return None
    return str(as_column(np.array([watermark]), source.schema.field(column).type).cast(pa.string())[0].as_py())

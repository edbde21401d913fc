"""OnTime: pass on the rows that are on time; late rows go to a side output, with the watermark that they missed.

A row of a source is late if one of its event times is below the watermark before this epoch, or is NULL where a
watermark is declared. A row of a branch of a union is late if it is below the watermark of the union. Stateless. Late
rows are counted, and become rows of the `late` relation of each view that leaves them out. A late retraction is in it
as well, with `undo`.
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
from rejoinder.runtime.task import Clock, Task
from rejoinder.store.runs.time_values import NO_TIME, times_of
from rejoinder.watermarks.formula import value_of


def on_time(task: Task, step: OnTime) -> None:
    """Run the step."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    late = np.zeros(stream.num_rows, bool)
    side_outputs: list[pa.Table] = []
    for column, formula in step.times:
        watermark = value_of(formula, task.clock.watermarks, LEAST)
        missed = _missed(stream, column, watermark, keeps_nulls=step.keeps_nulls) & ~late
        if missed.any():
            side_outputs += _late_rows(task, take(stream, np.flatnonzero(missed)), column, watermark, step)
            late |= missed
    if side_outputs:
        task.streams[step.late] = contiguous(side_outputs)
    on_time_rows = stream if not late.any() else take(stream, np.flatnonzero(~late))
    if on_time_rows.num_rows:
        task.streams[step.output] = on_time_rows


def has_late_rows(rows: pa.Table, step: OnTime, clock: Clock) -> bool:
    """Whether the step would keep or report one of the rows as late, for which it needs all columns."""
    bounds = ((column, value_of(formula, clock.watermarks, LEAST)) for column, formula in step.times)
    return step.policy != "drop" and any(
        _missed(rows, column, watermark, keeps_nulls=step.keeps_nulls).any() for column, watermark in bounds
    )


def _missed(stream: pa.Table, column: str, watermark: int, *, keeps_nulls: bool) -> Mask:
    times = times_of(stream, column)
    missed: Mask = times < watermark
    return missed if keeps_nulls else missed | (times == NO_TIME)


def _late_rows(task: Task, rows: pa.Table, column: str, watermark: int, step: OnTime) -> list[pa.Table]:
    """Return late rows as rows of the side output; none if the policy is `drop`. Raises `LateRow` if it is `fail`."""
    labels, kind = dict(step.labels), rows.schema.field(column).type
    plain = without(rows, RESERVED)
    plain = plain.rename_columns([labels.get(name, name) for name in plain.column_names])
    label = labels.get(column, column)
    if step.policy == "fail":
        raise LateRow(
            f"a row of `{step.name}` is late",
            detail=f"{rows.num_rows} such row(s); the watermark of `{label}` is {_shown(watermark, kind)}",
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
            "column": pa.array([label] * rows.num_rows),
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

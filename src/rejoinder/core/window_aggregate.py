"""WindowAggregate: aggregate tumbling or hopping windows, and emit each when the watermark passes its end.

Windows are made of one time column. Watermarks of other columns are dropped, even of grouping columns. The window start
and end on the output have their own watermarks: the largest values that make no later window late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from rejoinder.core.event_times import field_of, unit_of
from rejoinder.core.messages import LateRows, Message, Rows, with_columns
from rejoinder.core.operator import Operator
from rejoinder.core.window_state import Call, WindowState
from rejoinder.errors import TypeMismatch, Unsupported
from rejoinder.kernels.arrow.columns import Int64, take
from rejoinder.kernels.arrow.ordered import as_column
from rejoinder.store.runs.time_values import NO_TIME, times_of
from rejoinder.watermarks.coalescer import Watermark

START, END = "window_start", "window_end"
Time = TypeVar("Time", int, Int64)


class WindowAggregate(Operator):
    """Aggregate inputs by window and by columns; `times` has the time column of each input, `key` is its watermark key.

    `schema` has the columns that are read. `size` and `offset` are in the unit of the time: any unit for integers, days
    for dates, microseconds for timestamps. With a `slide`, a window starts at each slide, and a row is in up to
    ⌈size / slide⌉ windows. Output watermarks have the keys `start_key` and `end_key`.

    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    >>> counts = WindowAggregate(schema, times=["t"], size=5, group_by=["k"], calls={"n": Call("count")})
    >>> counts.rows(0, pa.table({"t": [1, 3, 7], "k": ["a", "a", "b"]}, schema=schema))
    []
    >>> rows, start, end = counts.watermark(0, key=0, time=5)
    >>> rows.table.to_pylist(), start, end
    ([{'window_start': 0, 'window_end': 5, 'k': 'a', 'n': 2}], Watermark(key=0, time=5), Watermark(key=1, time=10))
    """

    parts = ("watermarks", "windows")

    def __init__(
        self,
        schema: pa.Schema,
        *,
        times: Sequence[str],
        size: int,
        slide: int | None = None,
        calls: Mapping[str, Call],
        group_by: Sequence[str] = (),
        offset: int = 0,
        key: int = 0,
        start_key: int = 0,
        end_key: int = 1,
        upstream: Sequence[int] | None = None,
    ) -> None:
        super().__init__(len(times) if upstream is None else upstream)
        self._size, self._offset = size, offset
        self._slide = size if slide is None else slide
        if not 1 <= self._slide <= size:
            raise Unsupported(
                "a window has a size and a slide of at least 1, and the slide is not longer than the size",
                detail=f"a size of {size} and a slide of {self._slide}",
                hint="omit `slide` for windows that do not overlap",
            )
        for name in times:
            unit_of(schema, name, "the time of an input")
        kinds = {schema.field(name).type for name in times}
        if len(kinds) != 1:
            raise TypeMismatch(
                "the times of a window aggregation have different types",
                detail=", ".join(f"`{name}` is {schema.field(name).type}" for name in times),
                hint="cast them to one type first",
            )
        (self._kind,) = kinds
        self._times = tuple(times)
        read = [*group_by, *(call.column for call in calls.values() if call.column is not None)]
        for name in read:
            field_of(schema, name, "grouped by" if name in group_by else "aggregated")
        self._schemas = [pa.schema([schema.field(name) for name in dict.fromkeys([time, *read])]) for time in times]
        self._key, self._start_key, self._end_key = key, start_key, end_key
        self._state = WindowState(schema, group_by, calls)
        self._closed: int | None = None

    def on_rows(self, ordinal: int, table: pa.Table) -> list[Message]:
        """Add rows to their windows; return late rows."""
        table = with_columns(table, self._schemas[ordinal], ordinal)
        times = times_of(table, self._times[ordinal])
        late = times == NO_TIME
        reached = self._watermarks.whole.value(self._key)
        if reached is not None:
            late |= times < reached
        on_time = np.flatnonzero(~late)
        if len(on_time):
            rows, windows = self._windows(times[on_time])
            self._state.add(take(table, on_time[rows]), windows)
        return [LateRows(ordinal, take(table, np.flatnonzero(late)))] if late.any() else []

    def on_watermark(self, watermark: Watermark) -> list[Message]:
        """Emit the windows that end at or before the watermark, then the watermarks of their starts and ends."""
        if watermark.key != self._key:
            return []
        bound = self._open(watermark.time)
        if self._closed is not None and bound <= self._closed:
            return []
        self._closed = bound
        closed = self._state.close(bound)
        result: list[Message] = [] if closed is None else [Rows(self._shown(*closed))]
        start = bound * self._slide + self._offset
        marks = [Watermark(self._start_key, start), Watermark(self._end_key, start + self._size)]
        return result + sorted(marks, key=lambda mark: mark.key)

    def snapshot(self) -> dict[str, Any]:
        """Return the watermarks and the open windows."""
        return super().snapshot() | {"windows": self._state.snapshot()}

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Continue from snapshots; a group may be in one of them only."""
        super().restore(*snapshots)
        reached = self._watermarks.whole.value(self._key)
        self._closed = None if reached is None else self._open(reached)
        self._state.restore([snapshot["windows"] for snapshot in snapshots], self._closed)

    def _windows(self, times: Int64) -> tuple[Int64, Int64]:
        """Return the windows of each time, as pairs: positions of times, and numbers of windows."""
        first, last = self._open(times), (times - self._offset) // self._slide
        counts = last - first + 1
        rows = np.repeat(np.arange(len(times)), counts)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, first[rows] + nth

    def _open(self, time: Time) -> Time:
        """Return the number of the first window that ends after a time."""
        return (time - self._offset - self._size) // self._slide + 1

    def _shown(self, windows: Int64, rows: pa.Table) -> pa.Table:
        starts = windows * self._slide + self._offset
        bounds = {START: as_column(starts, self._kind), END: as_column(starts + self._size, self._kind)}
        return pa.table(bounds | {name: rows.column(name) for name in rows.column_names})

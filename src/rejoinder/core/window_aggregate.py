"""WindowAggregate: aggregates of tumbling windows, given out when the watermark of the windows' time passes their end.

Only one time makes windows. Watermarks of other columns are dropped, also of columns that are grouped by: what is on
output are the bounds of windows, and these get watermarks of their own, as high as no later window makes them late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.core.messages import LateRows, Message, Rows, with_columns
from rejoinder.core.operator import Operator
from rejoinder.core.window_state import Call, WindowState
from rejoinder.errors import TypeMismatch
from rejoinder.kernels.columns import Int64, take
from rejoinder.kernels.ordered import as_column
from rejoinder.operators.coalescer import Watermark
from rejoinder.store.times import TIMELESS, times_of

START, END = "window_start", "window_end"


class WindowAggregate(Operator):
    """Aggregate inputs by window and by columns; `times` names the time column of each input, `key` its watermark's.

    `schema` has the columns that are read. `size` and `offset` are in the time's own unit: its own for integers, days
    for dates, microseconds for timestamps. Output watermarks have `start_key` and `end_key`.

    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    >>> counts = WindowAggregate(schema, times=["t"], size=5, group_by=["k"], calls={"n": Call("count")})
    >>> counts.rows(0, pa.table({"t": [1, 3, 7], "k": ["a", "a", "b"]}, schema=schema))
    []
    >>> rows, start, end = counts.watermark(0, key=0, time=5)
    >>> rows.table.to_pylist(), start, end
    ([{'window_start': 0, 'window_end': 5, 'k': 'a', 'n': 2}], Watermark(key=0, time=5), Watermark(key=1, time=10))
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        times: Sequence[str],
        size: int,
        calls: Mapping[str, Call],
        group_by: Sequence[str] = (),
        offset: int = 0,
        key: int = 0,
        start_key: int = 0,
        end_key: int = 1,
        upstream: Sequence[int] | None = None,
    ) -> None:
        super().__init__(len(times) if upstream is None else upstream)
        if size < 1:
            raise ValueError("a window has a size of at least 1")
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
        self._schemas = [pa.schema([schema.field(name) for name in dict.fromkeys([time, *read])]) for time in times]
        self._size, self._offset = size, offset
        self._key, self._start_key, self._end_key = key, start_key, end_key
        self._state = WindowState(schema, group_by, calls)
        self._closed: int | None = None

    def on_rows(self, ordinal: int, table: pa.Table) -> list[Message]:
        """Take rows into their windows; those that are late are handed back."""
        table = with_columns(table, self._schemas[ordinal], ordinal)
        times = times_of(table, self._times[ordinal])
        late = times == TIMELESS
        reached = self._watermarks.whole.value(self._key)
        if reached is not None:
            late |= times < reached
        on_time = np.flatnonzero(~late)
        if len(on_time):
            self._state.add(take(table, on_time), (times[on_time] - self._offset) // self._size)
        return [LateRows(ordinal, take(table, np.flatnonzero(late)))] if late.any() else []

    def on_watermark(self, watermark: Watermark) -> list[Message]:
        """Give out the windows that end at or before the watermark, then the watermarks of window bounds."""
        if watermark.key != self._key:
            return []
        bound = (watermark.time - self._offset) // self._size
        if self._closed is not None and bound <= self._closed:
            return []
        self._closed = bound
        closed = self._state.close(bound)
        result: list[Message] = [] if closed is None else [Rows(self._shown(*closed))]
        start = bound * self._size + self._offset
        marks = [Watermark(self._start_key, start), Watermark(self._end_key, start + self._size)]
        return result + sorted(marks, key=lambda mark: mark.key)

    def snapshot(self) -> dict[str, Any]:
        """Give the watermarks and the open windows."""
        return super().snapshot() | {"windows": self._state.snapshot()}

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Go on from snapshots; each group has to be in one of them only."""
        super().restore(*snapshots)
        self._state.restore([snapshot["windows"] for snapshot in snapshots])
        reached = self._watermarks.whole.value(self._key)
        self._closed = None if reached is None else (reached - self._offset) // self._size

    def _shown(self, windows: Int64, rows: pa.Table) -> pa.Table:
        starts = windows * self._size + self._offset
        bounds = {START: as_column(starts, self._kind), END: as_column(starts + self._size, self._kind)}
        return pa.table(bounds | {name: rows.column(name) for name in rows.column_names})

"""Streams: append-only rows.

A stream is joined with a stream within a time, and with a table at arrival: a result is not joined again when the other
side changes. So a left or outer join of streams keeps its padded rows, even if a match arrives later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import overload

from rejoinder.api.relations.join_sides import On, Pairing, Select, refuse_join
from rejoinder.api.relations.named_rows import Length, Rows, length_text
from rejoinder.api.relations.selection import Home, refuse_other_home
from rejoinder.api.relations.table import GroupedTable, Groups, Table, grouped, selected_window
from rejoinder.api.relations.time_windows import TimeWindows
from rejoinder.api.relations.windowed import WindowedTable
from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.sql.bind.binder import Binder
from rejoinder.sql.statements.query_text import name_text as quoted
from rejoinder.sql.types.interval_literals import read_interval

Within = Length | tuple[Length, Length]
"""The maximum distance of the other side's time in both directions; or the distances before and after."""


@dataclass(frozen=True, repr=False)
class Stream(Rows):
    """Append-only rows. `time` is their event-time column; None if it is not known."""

    time: str | None

    @classmethod
    def of(cls, home: Home, name: str, *, time: str | None = None) -> Stream:
        """Return a stream by name, or a view without retractions. The default time is its event-time column.

        Raises `InvalidSql` if rows of the relation can be retracted.
        """
        relation = readable(home.catalog, name)
        if not Binder(home.catalog).is_stream(name):
            raise InvalidSql(
                f"`{relation.name}` is not a stream: its rows can be retracted",
                detail=f"it is a {relation.kind if isinstance(relation, Source) else 'view: ' + relation.query}",
                hint="Table.of(…) reads it as a table; to_stream() gives its changes",
            )
        times = list(relation.watermarks) if isinstance(relation, Source) else []
        stream = cls(home, quoted(relation.name), relation.name, None)
        if time is None and len(times) == 1:
            time = times[0]
        return stream if time is None else stream.with_time(time)

    def with_time(self, column: str) -> Stream:
        """Return the same stream with another time column."""
        return replace(self, time=self.column(column))

    def select(self, *columns: str) -> Stream:
        """Select columns: SQL expressions, with AS for a new name."""
        return self._result(f"SELECT {', '.join(columns)} FROM {self._from}")

    def merge(self, other: Stream) -> Stream:
        """Return the rows of both streams. Columns are matched by position."""
        if not isinstance(other, Stream):
            raise Unsupported(
                f"a stream is merged with a stream, and `{getattr(other, 'name', other)}` is not a stream",
                detail=f"it is a {type(other).__name__}, whose rows can be retracted",
                hint="to_stream() gives the changes of a table",
            )
        refuse_other_home(self, other)
        return self._result(f"SELECT * FROM ({self.query} UNION ALL {other.query})")

    # -- joins --------------------------------------------------------------------------------------------------------

    def join(
        self, other: Stream, *, on: On | None = None, within: Within | None = None, select: Select = None
    ) -> Stream:
        """Join rows with equal keys whose times are `within` a distance. Each pair is emitted once."""
        return self._with_stream("", "join", other, on, within, select)

    @overload
    def left_join(self, other: Stream, *, on: On, within: Within, select: Select = None) -> Stream: ...
    @overload
    def left_join(self, other: Table, *, on: On | None = None, select: Select = None) -> Stream: ...
    @overload
    def left_join(
        self, other: WindowedTable, *, window: str, on: On | None = None, select: Select = None
    ) -> Stream: ...

    def left_join(
        self,
        other: Stream | Table | WindowedTable,
        *,
        on: On | None = None,
        within: Within | None = None,
        window: str | None = None,
        select: Select = None,
    ) -> Stream:
        """Keep all rows, each joined with the other side at its arrival, or padded with NULL.

        The other side is a stream, joined `within` a time; a table, joined by its key; or a windowed table, joined by
        its key and the window that `window` selects.
        """
        if isinstance(other, Stream):
            return self._with_stream("LEFT", "left_join", other, on, within, select)
        if isinstance(other, Table):
            return self._result(other.looked_up_by(self, on, ()).joined("LEFT", select=select, at_arrival=True))
        if isinstance(other, WindowedTable):
            pairing, condition = selected_window(self, other, on, window, ())
            return self._result(pairing.joined("LEFT", select=select, conditions=[condition], at_arrival=True))
        raise refuse_join(self, "left_join", other)

    def outer_join(
        self, other: Stream, *, on: On | None = None, within: Within | None = None, select: Select = None
    ) -> Stream:
        """Join as in `join`, and keep rows of either side without a match at their arrival, padded with NULL."""
        return self._with_stream("FULL", "outer_join", other, on, within, select)

    def _with_stream(
        self, kind: str, method: str, other: object, on: On | None, within: Within | None, select: Select
    ) -> Stream:
        if not isinstance(other, Stream):
            raise refuse_join(self, method, other)
        if on is None or within is None:
            raise InvalidSql(
                f"the join of `{self.name}` and `{other.name}` has no {'key' if on is None else 'bound in time'}",
                hint='streams are joined on="column", within="10 minutes"',
            )
        before, after = _ends(within, f"the join of `{self.name}` and `{other.name}`")
        pairing = Pairing.of(self, other, on)
        left_name, right_name = pairing.names
        left_time, right_time = f"{left_name}.{quoted(self._time())}", f"{right_name}.{quoted(other._time())}"
        bound = f"{right_time} BETWEEN {left_time} - {before} AND {left_time} + {after}"
        result = self._result(pairing.joined(kind, select=select, conditions=[bound], at_arrival=bool(kind)))
        return result if kind != "FULL" else replace(result, time=None)  # rows of the other side do not have it

    def _time(self) -> str:
        if self.time is None:
            raise InvalidSql(
                f"the time of `{self.name}` is not known",
                detail=f"columns: {', '.join(self.columns)}",
                hint='declare a WATERMARK on it, or name it: .with_time("ts")',
            )
        return self.time

    def _result(self, query: str) -> Stream:
        result = replace(self, item=f"({query})")
        has_time = self.time is not None and self.time.lower() in (name.lower() for name in result.columns)
        return result if has_time else replace(result, time=None)

    # -- tables -------------------------------------------------------------------------------------------------------

    def group_by(self, *keys: str) -> GroupedStream:
        """Group rows by columns or by expressions with AS."""
        return GroupedStream(self, keys)

    def to_table(self, key: str | Sequence[str], *, order: str | None = None, deleted: str | None = None) -> Table:
        """Return the last row of each key, by `order` or arrival. If `deleted` is true for it, the key has no row."""
        names = tuple(self.column(name) for name in ([key] if isinstance(key, str) else key))
        by = f"DESCRIPTOR({', '.join(map(quoted, names))})"
        by += "" if order is None else f", DESCRIPTOR({quoted(self.column(order))})"
        text = f"SELECT * FROM LATEST(TABLE {self.item}, {by}) AS {quoted(self.name)}"
        text += "" if deleted is None else f" WHERE NOT COALESCE({deleted}, FALSE)"
        return Table(self.home, f"({text})", self.name, names)

    def to(self, name: str, form: str | None = None, **options: object) -> None:
        """Create a view of the stream; with a format such as "kafka" and its options, also a sink."""
        self._define(name, form, options)

    def through(self, name: str, form: str | None = None, **options: object) -> Stream:
        """Create a view of the stream, and return a stream that reads the view."""
        self._define(name, form, options)
        return replace(self, item=quoted(name), name=name)


def _ends(within: Within, what: str) -> tuple[str, str]:
    """Return the distances before and after as SQL text. Raises `InvalidSql` or `Unsupported`."""
    hint = 'give the distances before and after, as in within=("0 minutes", "30 minutes")'
    ends = within if isinstance(within, tuple) else (within, within)
    if len(ends) != 2:
        raise InvalidSql(f"{what} is within two lengths, not {len(ends)}", detail=f"within={within!r}", hint=hint)
    before, after = map(length_text, ends)
    lengths = read_interval(before), read_interval(after)
    if any(length.months for length in lengths):
        raise Unsupported(
            f"{what} is within months, which is not supported",
            detail=f"within={within!r}: months have different lengths",
            hint="use a number of days",
        )
    if sum(length.micros for length in lengths) < 0:
        raise InvalidSql(
            f"{what} is within no time", detail=f"from {before} before to {after} after: no row is in it", hint=hint
        )
    return before, after


@dataclass(frozen=True)
class GroupedStream(GroupedTable):
    """Rows of a stream in groups by key."""

    rows: Stream

    def windowed(self, windows: TimeWindows) -> WindowedStream:
        """Group by windows of the stream's time too: `tumble(size)`, `hop(size, every=…)`, `session(gap)`, …"""
        self.rows._time()
        return WindowedStream(self.rows, self.keys, windows)


@dataclass(frozen=True)
class WindowedStream(Groups[WindowedTable]):
    """Rows of a stream in groups by key and window."""

    stream: Stream
    keys: tuple[str, ...]
    windows: TimeWindows

    def aggregate(self, *calls: str) -> WindowedTable:
        """One row per key and window: both, and aggregates as SQL calls with AS."""
        names, text = grouped(self.stream, self.keys, calls, self.windows.text(self.stream._time()))
        return WindowedTable(self.stream.home, f"({text})", self.stream.name, names, self.windows)

"""Streams: rows that come and stay as they came.

A stream is joined with a stream within a time, and with a table as that is when a row comes: what was joined is not
joined again. So a left or outer join of streams keeps its padded rows, however late a partner comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import overload

from rejoinder.api.relations.join_sides import On, Pairing, Select, refuse_join
from rejoinder.api.relations.named_rows import Length, Rows, length_text
from rejoinder.api.relations.selection import Home, refuse_other_home
from rejoinder.api.relations.table import Table, grouped, selected_window
from rejoinder.api.relations.time_windows import TimeWindows
from rejoinder.api.relations.windowed import WindowedTable
from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.sql.bind.binder import Binder
from rejoinder.sql.statements.query_text import name_text as quoted
from rejoinder.sql.types.interval_literals import read_interval

Within = Length | tuple[Length, Length]
"""How far the other side's time may be away, in either direction; or how far before, and how far after."""


@dataclass(frozen=True, repr=False)
class Stream(Rows):
    """Rows that only come. `time` is the column of their time, where it is known."""

    time: str | None

    @classmethod
    def of(cls, home: Home, name: str, *, time: str | None = None) -> Stream:
        """A stream by name, or a view whose rows are never taken back. Its event-time column is its time."""
        found = readable(home.catalog, name)
        if not Binder(home.catalog).is_stream(name):
            raise InvalidSql(
                f"`{found.name}` is not a stream: its rows can be taken back",
                detail=f"it is a {found.kind if isinstance(found, Source) else 'view: ' + found.query}",
                hint="Table.of(…) reads it as a table; to_stream() gives its changes",
            )
        marks = list(found.watermarks) if isinstance(found, Source) else []
        made = cls(home, quoted(found.name), found.name, None)
        if time is None and len(marks) == 1:
            time = marks[0]
        return made if time is None else made.with_time(time)

    def with_time(self, column: str) -> Stream:
        """The same stream, with the column of its time."""
        return replace(self, time=self.column(column))

    def select(self, *columns: str) -> Stream:
        """Columns: SQL expressions, with AS for a new name."""
        return self._made(f"SELECT {', '.join(columns)} FROM {self._from}")

    def merge(self, other: Stream) -> Stream:
        """The rows of both; columns go by position."""
        if not isinstance(other, Stream):
            raise Unsupported(
                f"a stream is merged with a stream, and `{getattr(other, 'name', other)}` is none",
                detail=f"it is a {type(other).__name__}, whose rows can be taken back",
                hint="to_stream() gives the changes of a table",
            )
        refuse_other_home(self, other)
        return self._made(f"SELECT * FROM ({self.query} UNION ALL {other.query})")

    # -- joins --------------------------------------------------------------------------------------------------------

    def join(
        self, other: Stream, *, on: On | None = None, within: Within | None = None, select: Select = None
    ) -> Stream:
        """Pairs of rows with equal keys whose times are `within` so much of each other, each pair once."""
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
        """All rows, each with what the other side has for it when it comes, or padded with NULL.

        The other side is a stream, of which rows `within` a time count; a table, by its key; or a windowed table, by
        its key and the window that `window` selects.
        """
        if isinstance(other, Stream):
            return self._with_stream("LEFT", "left_join", other, on, within, select)
        if isinstance(other, Table):
            return self._made(other.looked_up_by(self, on, ()).joined("LEFT", select=select, at_arrival=True))
        if isinstance(other, WindowedTable):
            pairing, chosen = selected_window(self, other, on, window, ())
            return self._made(pairing.joined("LEFT", select=select, conditions=[chosen], at_arrival=True))
        raise refuse_join(self, "left_join", other)

    def outer_join(
        self, other: Stream, *, on: On | None = None, within: Within | None = None, select: Select = None
    ) -> Stream:
        """Pairs as in `join`, and rows of either side that had no partner when they came."""
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
        ours, theirs = quoted(self._time()), quoted(other._time())
        pairing = Pairing.of(self, other, on)
        here, there = pairing.names
        near = f"{there}.{theirs} BETWEEN {here}.{ours} - {before} AND {here}.{ours} + {after}"
        made = self._made(pairing.joined(kind, select=select, conditions=[near], at_arrival=bool(kind)))
        return made if kind != "FULL" else replace(made, time=None)  # rows of the other side do not have it

    def _time(self) -> str:
        if self.time is None:
            raise InvalidSql(
                f"the time of `{self.name}` is not known",
                detail=f"columns: {', '.join(self.columns)}",
                hint='declare a WATERMARK on it, or name it: .with_time("ts")',
            )
        return self.time

    def _made(self, query: str) -> Stream:
        made = replace(self, item=f"({query})")
        kept = self.time is not None and self.time.lower() in (name.lower() for name in made.columns)
        return made if kept else replace(made, time=None)

    # -- tables -------------------------------------------------------------------------------------------------------

    def group_by(self, *keys: str) -> GroupedStream:
        """Groups of rows, by columns or by expressions with AS."""
        return GroupedStream(self, keys)

    def to_table(self, key: str | Sequence[str], *, order: str | None = None, deleted: str | None = None) -> Table:
        """The last row of each key, by the column `order` and as they come; none, if `deleted` is true for that row."""
        names = tuple(self.column(name) for name in ([key] if isinstance(key, str) else key))
        by = f"DESCRIPTOR({', '.join(map(quoted, names))})"
        by += "" if order is None else f", DESCRIPTOR({quoted(self.column(order))})"
        text = f"SELECT * FROM LATEST(TABLE {self.item}, {by}) AS {quoted(self.name)}"
        text += "" if deleted is None else f" WHERE NOT COALESCE({deleted}, FALSE)"
        return Table(self.home, f"({text})", self.name, names)

    def to(self, name: str, form: str | None = None, **options: object) -> None:
        """Keep the stream as a view of that name; with a format such as "kafka" and its options, send it on as well."""
        self._define(name, form, options)

    def through(self, name: str, form: str | None = None, **options: object) -> Stream:
        """Keep the stream as a view of that name, and go on from there."""
        self._define(name, form, options)
        return replace(self, item=quoted(name), name=name)


def _ends(within: Within, what: str) -> tuple[str, str]:
    """How far before and how far after, as SQL takes it."""
    hint = 'how far before and how far after, as in within=("0 minutes", "30 minutes")'
    ends = within if isinstance(within, tuple) else (within, within)
    if len(ends) != 2:
        raise InvalidSql(f"{what} is within two lengths, not {len(ends)}", detail=f"within={within!r}", hint=hint)
    before, after = (length_text(each) for each in ends)
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
class GroupedStream:
    """Rows of a stream in groups."""

    stream: Stream
    keys: tuple[str, ...]

    def windowed(self, windows: TimeWindows) -> WindowedStream:
        """The groups by windows of the stream's time too: `tumble(size)`, or `hop(size, every=…)`."""
        self.stream._time()
        return WindowedStream(self.stream, self.keys, windows)

    def aggregate(self, *calls: str) -> Table:
        """One row per group: its key, and aggregates as SQL calls with AS."""
        names, text = grouped(self.stream, self.keys, calls)
        return Table(self.stream.home, f"({text})", self.stream.name, names)

    def count(self, name: str = "count") -> Table:
        """The number of rows of each group."""
        return self.aggregate(f"count(*) AS {quoted(name)}")

    def sum(self, column: str, name: str | None = None) -> Table:
        """The sum of a column (or expression) over each group."""
        return self.aggregate(f"sum({column}) AS {quoted(name or column)}")


@dataclass(frozen=True)
class WindowedStream:
    """Rows of a stream in groups by key and window."""

    stream: Stream
    keys: tuple[str, ...]
    windows: TimeWindows

    def aggregate(self, *calls: str) -> WindowedTable:
        """One row per key and window: both, and aggregates as SQL calls with AS."""
        names, text = grouped(self.stream, self.keys, calls, self.windows.text(self.stream._time()))
        return WindowedTable(self.stream.home, f"({text})", self.stream.name, names, self.windows)

    def count(self, name: str = "count") -> WindowedTable:
        """The number of rows of each key and window."""
        return self.aggregate(f"count(*) AS {quoted(name)}")

    def sum(self, column: str, name: str | None = None) -> WindowedTable:
        """The sum of a column (or expression) over each key and window."""
        return self.aggregate(f"sum({column}) AS {quoted(name or column)}")

"""Windowed tables: aggregates of a stream by key and window, the result of `Stream.group_by(…).windowed(…)`.

A row is identified by its key and its window. Joins use both, or the key and a shifted window. A windowed table has no
`to` and no `through`: `to_stream` turns it into a stream, with columns that the caller chooses for the window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, overload

from rejoinder.api.relations.join_sides import On, Pairing, Select, refuse_join, refuse_one_sided
from rejoinder.api.relations.named_rows import Length, Rows, length_text
from rejoinder.api.relations.time_windows import TimeWindows
from rejoinder.errors import InvalidSql
from rejoinder.sql.statements.query_text import name_text as quoted

if TYPE_CHECKING:
    from rejoinder.api.relations.stream import Stream
    from rejoinder.api.relations.table import Table

WINDOW = "window"


@dataclass(frozen=True, repr=False)
class WindowedTable(Rows):
    """One row per key and window, in column `window`."""

    key: tuple[str, ...]
    windows: TimeWindows

    def select(self, *columns: str) -> WindowedTable:
        """Select columns: SQL expressions, with AS for a new name. The key and `window` must be among them."""
        return self._selected(columns, (*self.key, WINDOW))

    def join(self, other: WindowedTable, *, select: Select = None) -> WindowedTable:
        """Join rows with equal key and window."""
        return self._with_windowed("", "join", other, None, select)

    def outer_join(self, other: WindowedTable, *, select: Select = None) -> WindowedTable:
        """Join rows with equal key and window, and keep rows of either side without a match, padded with NULL."""
        return self._with_windowed("FULL", "outer_join", other, None, select)

    @overload
    def left_join(self, other: Table, *, on: On | None = None, select: Select = None) -> WindowedTable: ...
    @overload
    def left_join(
        self, other: WindowedTable, *, shift: Length | None = None, select: Select = None
    ) -> WindowedTable: ...

    def left_join(
        self,
        other: Table | WindowedTable,
        *,
        on: On | None = None,
        shift: Length | None = None,
        select: Select = None,
    ) -> WindowedTable:
        """Keep all rows, joined with the row of a table for their key, or of a windowed table for key and window.

        With `shift`, the window that much later is looked up, or earlier as in "-7 days". The result has the windows of
        this side.
        """
        from rejoinder.api.relations.table import Table

        if isinstance(other, WindowedTable):
            if on is not None:
                raise InvalidSql("windowed tables are joined by their keys", hint="leave on= out")
            return self._with_windowed("LEFT", "left_join", other, shift, select)
        if not isinstance(other, Table):
            raise refuse_join(self, "left_join", other, "left_join with a Table", "join, left_join and outer_join")
        if shift is not None:
            raise InvalidSql("a table has no windows to be shifted", hint="leave shift= out")
        pairing = other.looked_up_by(self, on, self.key)
        return self._result(pairing.joined("LEFT", select=select))

    def to_stream(self, *columns: str) -> Stream:
        """Return the changes as a stream: each new value of a key and window is a row.

        Columns are SQL expressions over the columns of this table; all of them by default. With key and window, the
        stream can be read as a table again. With the key alone, it can be joined by the key.
        """
        from rejoinder.api.relations.stream import Stream

        listed = ", ".join(columns or (quoted(name) for name in self.columns))
        text = f"SELECT {listed} FROM CHANGES(TABLE {self.item}) AS {quoted(self.name)} WHERE NOT _undo"
        return Stream(self.home, f"({text})", self.name, None)

    def _with_windowed(
        self, kind: str, method: str, other: WindowedTable, shift: Length | None, select: Select
    ) -> WindowedTable:
        if not isinstance(other, WindowedTable):
            raise refuse_join(self, method, other, "left_join")
        if other.windows.length != self.windows.length:
            raise InvalidSql(
                f"`{self.name}` and `{other.name}` have windows of different sizes",
                detail=f"{self.windows.size} and {other.windows.size}: no window is one of both",
                hint="group both by windows of one size",
            )
        pairs = [*zip(self.key, other.key, strict=False)]
        if len(self.key) != len(other.key):
            raise InvalidSql(
                f"`{self.name}` and `{other.name}` have keys of {len(self.key)} and {len(other.key)} columns",
                hint="group both by as many columns",
            )
        if shift is None:
            query = Pairing.of(self, other, None, [*pairs, (WINDOW, WINDOW)]).joined(kind, select=select)
            if kind == "FULL":
                refuse_one_sided(self, other, query, (*self.key, WINDOW))
            return self._result(query)
        pairing = Pairing.of(self, other, None, pairs)
        left, right = pairing.names
        shifted = f"WINDOW_START({right}.{WINDOW}) = WINDOW_START({left}.{WINDOW}) + {length_text(shift)}"
        return self._result(pairing.joined(kind, select=select, conditions=[shifted]))

    def _result(self, query: str) -> WindowedTable:
        result = replace(self, item=f"({query})")
        for name in (*self.key, WINDOW):
            result.column(name, "it is part of the key of the result, and must be selected")
        return result

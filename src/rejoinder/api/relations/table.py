"""Tables: one row per key, which can be replaced and deleted. Results on tables are kept up to date."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from rejoinder.api.relations.join_sides import On, Pairing, Select, refuse_join, refuse_one_sided
from rejoinder.api.relations.named_rows import Rows
from rejoinder.api.relations.selection import Home
from rejoinder.api.relations.windowed import WINDOW, WindowedTable
from rejoinder.connectors.registry import SINKS
from rejoinder.errors import InvalidSql, TypeMismatch, Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.ir.logical import Expand
from rejoinder.sql.functions.time.windows import is_window
from rejoinder.sql.statements.query_text import name_text as quoted
from rejoinder.sql.types.spark_types import TIMESTAMP, TIMESTAMP_NTZ, is_integer, spark_name

if TYPE_CHECKING:
    from rejoinder.api.relations.stream import Stream

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Table(Rows):
    """One row per `key`."""

    key: tuple[str, ...]

    @classmethod
    def of(cls, home: Home, name: str, key: str | Sequence[str] | None = None) -> Table:
        """Return a table by name, or a view with one row per `key`. Raises `InvalidSql` if it has another key."""
        relation = home.catalog.get(name)
        keys = (key,) if isinstance(key, str) else tuple(key or ())
        if isinstance(relation, Source):
            primary = relation.primary_key
            if relation.kind != "table" or (keys and [k.lower() for k in keys] != [k.lower() for k in primary]):
                raise InvalidSql(
                    f"`{relation.name}` is not a table by {', '.join(keys) or 'a key'}",
                    detail=f"it is a {relation.kind}" + f" by {', '.join(primary)}" * bool(primary),
                    hint="Stream.of(…).to_table(key) turns a stream into a table",
                )
            keys = primary
        if not keys:
            raise InvalidSql(f"the key of `{name}` is not known", hint=f'Table.of(…, "{name}", key="id")')
        table = cls(home, quoted(relation.name), relation.name, keys)
        return replace(table, key=tuple(table.column(column) for column in keys))

    def select(self, *columns: str) -> Table:
        """Select columns: SQL expressions, with AS for a new name. The key must be among them."""
        return self._selected(columns, self.key)

    def join(self, other: Table, *, on: On | None = None, select: Select = None) -> Table:
        """Join rows with the row of another table that has the same key, or the key that `on` selects."""
        return self._with_table("", "join", other, on, select)

    @overload
    def left_join(self, other: Table, *, on: On | None = None, select: Select = None) -> Table: ...
    @overload
    def left_join(self, other: WindowedTable, *, window: str, on: On | None = None, select: Select = None) -> Table: ...

    def left_join(
        self,
        other: Table | WindowedTable,
        *,
        window: str | None = None,
        on: On | None = None,
        select: Select = None,
    ) -> Table:
        """Keep all rows, joined with the row of a table, or of a windowed table in the window that `window` selects."""
        if isinstance(other, WindowedTable):
            pairing, condition = selected_window(self, other, on, window, self.key)
            return self._result(pairing.joined("LEFT", select=select, conditions=[condition]))
        return self._with_table("LEFT", "left_join", other, on, select)

    def outer_join(self, other: Table, *, select: Select = None) -> Table:
        """Join the rows of both tables by key, padded with NULL where one of them has no row."""
        return self._with_table("FULL", "outer_join", other, None, select)

    def group_by(self, *keys: str) -> GroupedTable:
        """Group rows. A row whose group changes is removed from its old group."""
        return GroupedTable(self, keys)

    def to_stream(self, *, deletes: str | None = None) -> Stream:
        """Return the changes as a stream: each new or replaced row.

        `deletes` names an additional column, which is TRUE in a row for each deleted key: its last row.
        """
        from rejoinder.api.relations.stream import Stream

        listed = ", ".join(quoted(name) for name in self.columns)
        added = f"FROM CHANGES(TABLE {self.item}) AS {quoted(self.name)} WHERE NOT _undo"
        if deletes is None:
            return Stream(self.home, f"(SELECT {listed} {added})", self.name, None)
        flag, gone, now = quoted(deletes), "`gone#arrival`", "`now#arrival`"
        same = " AND ".join(f"{gone}.{quoted(name)} <=> {now}.{quoted(name)}" for name in self.key)
        text = (
            f"WITH {now} AS ({self.query}) SELECT {listed}, FALSE AS {flag} {added} UNION ALL "
            f"SELECT {listed}, TRUE AS {flag} FROM CHANGES(TABLE {self.item}) AS {gone} "
            f"LEFT ANTI JOIN {now} FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP AS {now} ON {same} WHERE {gone}._undo"
        )
        return Stream(self.home, f"({text})", self.name, None)

    def to(self, name: str, form: str | None = None, **options: object) -> None:
        """Create a view of the table; with a format and its options, also a sink.

        A sink with mode 'upsert' uses it with the table's key, unless another mode or key is given.
        """
        form = None if form is None else form.lower()
        side = SINKS.get(form or "")
        if side is not None and "upsert" in side.modes:
            mode = options.get("mode", "upsert")
            keyed = {"key": ", ".join(self.key)} if mode in side.keyed_modes and "key" not in options else {}
            options = {**options, "mode": mode, **keyed}
        self._define(name, form, options)

    def through(self, name: str, form: str | None = None, **options: object) -> Table:
        """Create a view of the table, and return a table that reads the view."""
        self.to(name, form, **options)
        return Table.of(self.home, name, self.key)

    def looked_up_by(self, left: Rows, on: On | None, key: Sequence[str]) -> Pairing:
        """Return the pairing of another side with this table's key; without `on`, by columns with the same names."""
        return _by_key(Pairing.of(left, self, on, _default(left, self, key, on)), self.key)

    def _with_table(self, kind: str, method: str, other: object, on: On | None, select: Select) -> Table:
        if not isinstance(other, Table):
            raise refuse_join(self, method, other, "left_join, with window=")
        if on is None and len(self.key) != len(other.key):
            raise InvalidSql(
                f"`{self.name}` and `{other.name}` have keys of {len(self.key)} and {len(other.key)} columns",
                detail=f"({', '.join(self.key)}) and ({', '.join(other.key)})",
                hint='map to the key of the other table: on={"expression": "column of its key"}',
            )
        query = other.looked_up_by(self, on, self.key).joined(kind, select=select)
        if kind == "FULL":
            refuse_one_sided(self, other, query, self.key)
        return self._result(query)

    def _result(self, query: str) -> Table:
        result = replace(self, item=f"({query})")
        for name in self.key:
            result.column(name, "it is part of the key of the result, and must be selected")
        return result


class Groups(ABC, Generic[T]):
    """Rows in groups."""

    @abstractmethod
    def aggregate(self, *calls: str) -> T:
        """One row per group: its key, its window if there is one, and aggregates as SQL calls with AS."""

    def count(self, name: str = "count") -> T:
        """The number of rows of each group."""
        return self.aggregate(f"count(*) AS {quoted(name)}")

    def sum(self, column: str, name: str | None = None) -> T:
        """The sum of a column (or expression) over each group."""
        return self.aggregate(f"sum({column}) AS {quoted(name or column)}")


@dataclass(frozen=True)
class GroupedTable(Groups[Table]):
    """Rows of a table or stream in groups by key."""

    rows: Rows
    keys: tuple[str, ...]

    def aggregate(self, *calls: str) -> Table:
        """One row per group: its key, and aggregates as SQL calls with AS."""
        names, text = grouped(self.rows, self.keys, calls)
        return Table(self.rows.home, f"({text})", self.rows.name, names)


def grouped(rows: Rows, keys: Sequence[str], calls: Sequence[str], window: str = "") -> tuple[tuple[str, ...], str]:
    """Return the key names of groups and the text of the query. Keys are columns, or expressions with AS."""
    if not keys:
        raise InvalidSql(f"`{rows.name}` is grouped by nothing", hint='name columns: group_by("country")')
    base = f"{rows.item} AS {quoted(rows.name)}"
    columns = {name.lower(): name for name in rows.columns}
    names = tuple(columns.get(key.lower(), "") for key in keys)
    if not all(names):
        keyed = replace(rows, item=f"(SELECT {', '.join(keys)} FROM {base})")
        names = tuple(keyed.columns)
        extra = ", ".join(key for key in keys if key.lower() not in columns)
        base = f"(SELECT *, {extra} FROM {base}) AS {quoted(rows.name)}"
    listed = ", ".join(map(quoted, names))
    shown = f"{listed}, {window} AS {quoted(WINDOW)}" if window else listed
    by = f"{listed}, {window}" if window else listed
    return names, f"SELECT {', '.join((shown, *calls))} FROM {base} GROUP BY {by}"


def selected_window(
    left: Rows, right: WindowedTable, on: On | None, window: str | None, key: Sequence[str]
) -> tuple[Pairing, str]:
    """How a side meets a windowed table: the pairing by its key, and the condition that selects the window."""
    if window is None:
        raise InvalidSql(
            f"which window of `{right.name}` is meant is not said",
            detail=f"`{left.name}` has no window",
            hint='window="an expression of the left side: a window, or the time at which it starts"',
        )
    pairing = _by_key(Pairing.of(left, right, on, _default(left, right, key, on)), right.key)
    said = pairing.bound(window)
    if isinstance(said.root, Expand):
        raise Unsupported(
            f"{window} selects several windows of `{right.name}`",
            detail="a row meets one window",
            hint="give one window, as in TUMBLE(ts, INTERVAL 1 DAY), or the time at which it starts",
        )
    kind = said.schema.field("value").type
    size = said.windows["value"].size if "value" in said.windows else None
    if size is not None and size != right.windows.length:
        raise InvalidSql(
            f"{window} selects no window of `{right.name}`",
            detail=f"the windows of `{right.name}` are of another size, {right.windows.size}",
            hint="give a window of that size, or the time at which it starts",
        )
    if is_integer(kind) if right.windows.is_of_integers else kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return pairing, f"{pairing.of_left(window)} = WINDOW_START({pairing.names[1]}.{WINDOW})"
    if is_window(kind):
        return pairing, f"{pairing.of_left(window)} = {pairing.names[1]}.{WINDOW}"
    raise TypeMismatch(
        f"{window} selects no window of `{right.name}`",
        detail=f"it is {spark_name(kind)}",
        hint="give a window, as in TUMBLE(ts, INTERVAL 1 DAY), or the time at which it starts",
    )


def _default(left: Rows, right: Table | WindowedTable, key: Sequence[str], on: On | None) -> list[tuple[str, str]]:
    """Return the default pairs of a join: the left key with the right key, or columns with the same names."""
    if len(key) == len(right.key):
        return list(zip(key, right.key, strict=True))
    columns = {name.lower() for name in left.columns}
    missing = [name for name in right.key if name.lower() not in columns]
    if on is None and missing:
        raise InvalidSql(
            f"`{right.name}` is joined by its key, and `{left.name}` does not have these columns",
            detail=f"its key is ({', '.join(right.key)}); columns of `{left.name}`: {', '.join(left.columns)}",
            hint=f'name it: on={{"expression of {left.name}": "{missing[0]}"}}',
        )
    return [(name, name) for name in right.key]


def _by_key(pairing: Pairing, key: Sequence[str]) -> Pairing:
    """Return the pairing. Raises `Unsupported` unless it has exactly the columns of the key."""
    named = sorted(name.lower() for _, name in pairing.pairs)
    if named != sorted(name.lower() for name in key):
        raise Unsupported(
            f"`{pairing.right.name}` is joined by its key",
            detail=f"its key is ({', '.join(key)}), and the join is by ({', '.join(n for _, n in pairing.pairs)})",
            hint="name all columns of the key, and no others; relation() joins by any condition",
        )
    return pairing

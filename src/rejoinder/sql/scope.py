"""A scope: the columns that a part of a query can name, and who they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import AmbiguousName, InvalidSql, UnknownName, near_misses
from rejoinder.sql.windows import ColumnBounds


@dataclass(frozen=True)
class Column:
    """A column in scope: the relation's alias, its name, its identifier in the plan, its type.

    `hidden` columns (the right side of USING) answer to their qualified name only. A window's companions are `bounds`.
    """

    qualifier: str
    name: str
    id: str
    type: pa.DataType
    hidden: bool = False
    bounds: ColumnBounds | None = None


@dataclass(frozen=True)
class Scope:
    """Columns in the order of `*`. Names compare without case, as in Spark.

    `repeats` are the columns of window starts that rows were repeated for (HOP), by the text of all starts of a row.
    """

    columns: tuple[Column, ...]
    repeats: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Scope:
        """Make a scope."""
        return cls(tuple(columns))

    def beside(self, other: Scope, merged: Sequence[str] = ()) -> Scope:
        """Both scopes; of the `merged` names (USING), shown once and first, the right one is hidden."""
        lowered = {name.lower() for name in merged}
        first = [c for name in merged for c in self.columns if c.name.lower() == name.lower() and not c.hidden]
        rest = [c for c in self.columns if c not in first]
        right = [replace(c, hidden=True) if c.name.lower() in lowered else c for c in other.columns]
        return Scope((*first, *rest, *right), self.repeats + other.repeats)

    def repeating(self, starts: str, column: str) -> Scope:
        """The scope of rows that are repeated for the windows of HOP."""
        return replace(self, repeats=(*self.repeats, (starts, column)))

    def bounds(self, column: str) -> ColumnBounds | None:
        """The companions of a window column."""
        return next((c.bounds for c in self.columns if c.id == column), None)

    def repeated(self, starts: str) -> str | None:
        """The column with the start of the window that a row was repeated for, by the text of all starts."""
        return dict(self.repeats).get(starts)

    def refuse_double_qualifiers(self, other: Scope, place: str) -> None:
        """Two relations of one name cannot be told apart."""
        ours = {c.qualifier.lower() for c in self.columns if c.qualifier}
        for column in other.columns:
            if column.qualifier.lower() in ours:
                raise AmbiguousName(
                    f"`{column.qualifier}` stands for two relations",
                    detail=place,
                    hint="give one of them another name: … AS other",
                )

    def all(self, qualifier: str | None, place: str) -> list[Column]:
        """The columns of `*` or `qualifier.*`."""
        if qualifier is None:
            return [c for c in self.columns if not c.hidden]
        found = [c for c in self.columns if c.qualifier.lower() == qualifier.lower()]
        if not found:
            known = sorted({c.qualifier for c in self.columns if c.qualifier})
            raise UnknownName(
                f"there is no relation `{qualifier}` in this FROM",
                detail=place,
                hint=near_misses(qualifier, known) or f"relations here: {', '.join(known) or 'none with a name'}",
            )
        return found

    def find(self, qualifier: str | None, name: str, place: str) -> Column:
        """The one column of that name."""
        found = [
            c
            for c in self.columns
            if c.name.lower() == name.lower()
            and (not c.hidden if qualifier is None else c.qualifier.lower() == qualifier.lower())
        ]
        if len(found) == 1:
            return found[0]
        if found:
            both = " and ".join(f"`{c.qualifier}.{c.name}`" for c in found)
            raise AmbiguousName(
                f"column `{name}` is ambiguous", detail=f"{both} in {place}", hint=f"write {both.split(' ')[0]}"
            )
        shown = f"{qualifier}.{name}" if qualifier else name
        known = [c.name for c in self.columns if qualifier is None or c.qualifier.lower() == qualifier.lower()]
        listed = ", ".join(f"`{n}`" for n in dict.fromkeys(known)) or "none"
        raise UnknownName(
            f"there is no column `{shown}`",
            detail=f"in {place}; columns here: {listed}",
            hint=near_misses(name, known) or self._hint(qualifier),
        )

    def _hint(self, qualifier: str | None) -> str:
        relations = sorted({c.qualifier for c in self.columns if c.qualifier})
        if qualifier and qualifier.lower() not in [name.lower() for name in relations]:
            return f"relations here: {', '.join(relations) or 'none with a name'}"
        return "take one of these, or add the relation that has it to FROM"

    def resolve(self, column: exp.Column) -> tuple[str, pa.DataType]:
        """Give the identifier and type of a column node; `alias.column`, or a plain name."""
        if column.args.get("db"):
            text = column.sql(dialect="spark")
            raise InvalidSql(f"`{text}` has too many parts", detail=_place(column), hint="write alias.column")
        place = _place(column)
        found = self.find(column.table or None, column.name, place)
        return found.id, found.type


def _place(column: exp.Column) -> str:
    parent = column.find_ancestor(exp.Select)
    text = column.sql(dialect="spark")
    line = column.this.meta.get("line")
    clause = column.parent.sql(dialect="spark") if column.parent is not None and parent is not None else text
    return f"`{clause[:120]}`" + (f" (line {line})" if line else "")

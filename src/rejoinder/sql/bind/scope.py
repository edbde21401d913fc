"""A scope: the columns that a part of a query can name, and who they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import AmbiguousName, InvalidSql, UnknownName, near_misses
from rejoinder.ir import nodes
from rejoinder.ir.logical import Node
from rejoinder.sql.functions.time.window_functions import ColumnBounds
from rejoinder.sql.parse.foreign_names import foreign_column


@dataclass(frozen=True)
class Column:
    """A column in scope: the relation's alias, its name, its identifier in the plan, its type.

    `hidden` columns (the side of USING that is not shown) answer to their qualified name only. A window's companions
    are `bounds`. `text` is the subquery whose value the column holds; `can_fail`: the value fails on some rows.
    """

    qualifier: str
    name: str
    id: str
    type: pa.DataType
    hidden: bool = False
    bounds: ColumnBounds | None = None
    text: str = ""
    can_fail: bool = False


@dataclass(frozen=True)
class Scope:
    """Columns in the order of `*`. Names compare without case, as in Spark.

    `repeats` are the columns of window starts that rows were repeated for (HOP), by the list of all starts of a row.
    In a subquery, `outer` is the scope around it, whose columns answer to names that are unknown here. The columns that
    SEMI and ANTI joins leave out, `left_out`, are known for the error that says so. `computed` are the values of
    subqueries, under names that nobody can write.
    """

    columns: tuple[Column, ...]
    repeats: tuple[tuple[nodes.Node, Column], ...] = ()
    outer: Scope | None = None
    left_out: tuple[Column, ...] = ()
    computed: tuple[Column, ...] = ()

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Scope:
        """Make a scope."""
        return cls(tuple(columns))

    def beside(self, other: Scope) -> Scope:
        """Both scopes."""
        return replace(
            self,
            columns=(*self.columns, *other.columns),
            repeats=self.repeats + other.repeats,
            left_out=self.left_out + other.left_out,
            computed=self.computed + other.computed,
        )

    def with_columns(self, columns: Sequence[Column]) -> Scope:
        """The same scope with its columns in another order, or some of them hidden."""
        return replace(self, columns=tuple(columns))

    def without(self, other: Scope) -> Scope:
        """The same scope, after a SEMI or ANTI join with another."""
        return replace(self, left_out=(*self.left_out, *other.columns))

    def inside(self, outer: Scope | None) -> Scope:
        """The same columns in a subquery, where those around it are in reach."""
        return replace(self, outer=outer)

    def computing(self, column: Column) -> Scope:
        """The same scope with the value of a subquery."""
        return replace(self, computed=(*self.computed, column))

    def subquery(self, text: str) -> Column | None:
        """The column that holds the value of a subquery, by its text."""
        return next((column for column in self.computed if column.text == text), None)

    def around(self) -> set[str]:
        """The identifiers of all columns of the queries around."""
        return set() if self.outer is None else {*self.outer.carried(), *self.outer.around()}

    def repeating(self, starts: nodes.Node, column: Column) -> Scope:
        """The scope of rows that are repeated for the windows of HOP."""
        return replace(self, repeats=(*self.repeats, (starts, column)))

    def bounds(self, column: str) -> ColumnBounds | None:
        """The companions of a window column."""
        found = next((c.bounds for c in self.columns if c.id == column), None)
        return self.outer.bounds(column) if found is None and self.outer is not None else found

    def repeated(self, starts: nodes.Node) -> str | None:
        """The column with the start of the window that a row was repeated for, by the list of all starts."""
        return next((column.id for known, column in self.repeats if known == starts), None)

    def carried(self) -> dict[str, pa.DataType]:
        """The identifiers of all columns, of the companions of windows, and of what rows were repeated for."""
        result = {c.id: c.type for c in (*self.columns, *(column for _, column in self.repeats), *self.computed)}
        for c in self.columns:
            if c.bounds is not None:
                result |= dict.fromkeys((c.bounds.start, c.bounds.end), c.type.field("start").type)
        return result

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
        """The columns of `*` or `qualifier.*`, where Spark puts the hidden ones first."""
        if qualifier is None:
            return [c for c in self.columns if not c.hidden]
        found = sorted(
            (c for c in self.columns if c.qualifier.lower() == qualifier.lower()), key=lambda c: not c.hidden
        )
        if not found:
            known = sorted({c.qualifier for c in self.columns if c.qualifier})
            hint = self._left_out_hint(qualifier, None) or near_misses(qualifier, known)
            raise UnknownName(
                f"there is no relation `{qualifier}` in this FROM",
                detail=place,
                hint=hint or f"relations here: {', '.join(known) or 'none with a name'}",
            )
        return found

    def find(self, qualifier: str | None, name: str, place: str) -> Column:
        """The one column of that name."""
        found = self._named(qualifier, name)
        if len(found) == 1:
            return found[0]
        if found:
            both = " and ".join(f"`{c.qualifier}.{c.name}`" for c in found)
            raise AmbiguousName(
                f"column `{name}` is ambiguous", detail=f"{both} in {place}", hint=f"write {both.split(' ')[0]}"
            )
        shown = f"{qualifier}.{name}" if qualifier else name
        known = [c.name for c in self.columns if qualifier is None or c.qualifier.lower() == qualifier.lower()]
        texts = known or [f"{c.qualifier}.{c.name}" if c.qualifier else c.name for c in self.columns if not c.hidden]
        listed = ", ".join(f"`{n}`" for n in dict.fromkeys(texts)) or "none"
        raise UnknownName(
            f"there is no column `{shown}`",
            detail=f"in {place}; columns here: {listed}",
            hint=self._left_out_hint(qualifier, name)
            or foreign_column(name)
            or near_misses(name, known)
            or self._hint(qualifier),
        )

    def _named(self, qualifier: str | None, name: str) -> list[Column]:
        return [
            c
            for c in (*self.columns, *self.computed)
            if c.name.lower() == name.lower()
            and (not c.hidden if qualifier is None else c.qualifier.lower() == qualifier.lower())
        ]

    def _left_out_hint(self, qualifier: str | None, name: str | None) -> str:
        """What to do about columns that a SEMI or ANTI join leaves out; empty if it is not about them."""
        here = {c.qualifier.lower() for c in self.columns}
        for c in self.left_out:
            asked, known = (name, c.name) if qualifier is None else (qualifier, c.qualifier)
            if known.lower() == (asked or "").lower() and (qualifier is None or known.lower() not in here):
                return (
                    f"SEMI and ANTI JOIN leave the columns of `{c.qualifier}` out; INNER, LEFT and RIGHT JOIN keep them"
                )
        return ""

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
        named = self._named(column.table or None, column.name)
        if len(named) == 1:  # the place, which is for messages, takes long to say
            return named[0].id, named[0].type
        place = _place(column)
        try:
            found = self.find(column.table or None, column.name, place)
        except UnknownName:
            found_outside = self._find_outside(column, place)
            if found_outside is None:
                raise
            found = found_outside
        return found.id, found.type

    def _find_outside(self, column: exp.Column, place: str) -> Column | None:
        """The column of the scope around; None if it has none, or if `a.b` may be a field of a column here."""
        if self.outer is None or any(c.name.lower() == column.table.lower() for c in self.columns):
            return None
        if self.outer.knows(column):
            return self.outer.find(column.table or None, column.name, place)
        return self.outer._find_outside(column, place)

    def knows(self, column: exp.Column) -> bool:
        """Say whether there is such a column here, one or more."""
        name, qualifier = column.name.lower(), column.table.lower()
        return any(
            c.name.lower() == name and (c.qualifier.lower() == qualifier if qualifier else not c.hidden)
            for c in self.columns
        )


@dataclass(frozen=True)
class Side:
    """What stands left or right of the word JOIN."""

    root: Node
    scope: Scope

    @property
    def parts(self) -> tuple[Node, Scope]:
        """Both, as a pair."""
        return self.root, self.scope


def _place(column: exp.Column) -> str:
    parent = column.find_ancestor(exp.Select)
    text = column.sql(dialect="spark")
    line = column.this.meta.get("line")
    is_named = isinstance(column.parent, exp.Alias)
    clause = column.parent.sql(dialect="spark") if column.parent and parent and not is_named else text
    return f"`{clause[:120]}`" + (f" (line {line})" if line else "")

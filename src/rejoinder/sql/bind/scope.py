"""A scope: the columns that an expression can refer to, and the resolution of their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import AmbiguousName, InvalidSql, UnknownName, near_misses
from rejoinder.ir.expressions import nodes
from rejoinder.ir.logical import Node
from rejoinder.sql.functions.time.windows import ColumnBounds
from rejoinder.sql.parse.foreign_names import foreign_column


@dataclass(frozen=True)
class Column:
    """A column in scope."""

    qualifier: str
    """The alias of its relation."""
    name: str
    id: str
    """Its id in the plan."""
    type: pa.DataType
    hidden: bool = False
    """Whether only the qualified name refers to it: the second column of a USING pair."""
    bounds: ColumnBounds | None = None
    """For a window: the columns with its start and end."""
    text: str = ""
    """For the value of a subquery: its SQL text."""
    can_fail: bool = False
    """Whether the value of the subquery fails on some rows."""
    output_name: str | None = None
    """Spark's name for the subquery, if it has one."""


@dataclass(frozen=True)
class Scope:
    """The columns that can be named, in the order of `*`. Names are case-insensitive, as in Spark."""

    columns: tuple[Column, ...]
    repeats: tuple[tuple[nodes.Node, Column], ...] = ()
    """For each HOP: the expression that lists all window starts of a row, and the column with one of them."""
    outer: Scope | None = None
    """In a subquery: the scope of the outer query. Its columns resolve here if no column here has the name."""
    left_out: tuple[Column, ...] = ()
    """Columns that SEMI and ANTI joins removed; used for error messages only."""
    computed: tuple[Column, ...] = ()
    """Values of subqueries and window functions, with generated names."""

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Scope:
        """Create a scope."""
        return cls(tuple(columns))

    def beside(self, other: Scope) -> Scope:
        """Return the scope of a join of two relations."""
        return replace(
            self,
            columns=(*self.columns, *other.columns),
            repeats=self.repeats + other.repeats,
            left_out=self.left_out + other.left_out,
            computed=self.computed + other.computed,
        )

    def with_columns(self, columns: Sequence[Column]) -> Scope:
        """Return the scope with its columns reordered or hidden."""
        return replace(self, columns=tuple(columns))

    def without(self, other: Scope) -> Scope:
        """Return the scope after a SEMI or ANTI join with `other`."""
        return replace(self, left_out=(*self.left_out, *other.columns))

    def inside(self, outer: Scope | None) -> Scope:
        """Return the scope as that of a subquery in which the columns of `outer` resolve."""
        return replace(self, outer=outer)

    def computing(self, column: Column) -> Scope:
        """Return the scope with the value of a subquery."""
        return replace(self, computed=(*self.computed, column))

    def subquery(self, text: str) -> Column | None:
        """Return the column with the value of a subquery, by its text."""
        return next((column for column in self.computed if column.text == text), None)

    def outer_ids(self) -> set[str]:
        """Return the ids of all columns of outer queries."""
        return set() if self.outer is None else {*self.outer.carried(), *self.outer.outer_ids()}

    def repeating(self, starts: nodes.Node, column: Column) -> Scope:
        """Return the scope of rows that HOP repeats, once per window."""
        return replace(self, repeats=(*self.repeats, (starts, column)))

    def bounds(self, column: str) -> ColumnBounds | None:
        """Return the columns with the start and end of a window column."""
        bounds = next((c.bounds for c in self.columns if c.id == column), None)
        return self.outer.bounds(column) if bounds is None and self.outer is not None else bounds

    def repeated(self, starts: nodes.Node) -> str | None:
        """Return the column with the window start of a repeated row; `starts` lists all starts of the row."""
        return next((column.id for listed, column in self.repeats if listed == starts), None)

    def carried(self) -> dict[str, pa.DataType]:
        """Return ids and types of all columns, including starts and ends of windows."""
        result = {c.id: c.type for c in (*self.columns, *(column for _, column in self.repeats), *self.computed)}
        for c in self.columns:
            if c.bounds is not None:
                result |= dict.fromkeys((c.bounds.start, c.bounds.end), c.type.field("start").type)
        return result

    def all(self, qualifier: str | None, place: str) -> list[Column]:
        """Return the columns of `*` or `qualifier.*`. As in Spark, `qualifier.*` lists hidden columns first."""
        if qualifier is None:
            return [c for c in self.columns if not c.hidden]
        columns = sorted(
            (c for c in self.columns if c.qualifier.lower() == qualifier.lower()), key=lambda c: not c.hidden
        )
        if not columns:
            relations = sorted({c.qualifier for c in self.columns if c.qualifier})
            hint = self._left_out_hint(qualifier, None) or near_misses(qualifier, relations)
            raise UnknownName(
                f"there is no relation `{qualifier}` in this FROM",
                detail=place,
                hint=hint or f"relations here: {', '.join(relations) or 'none with a name'}",
            )
        return columns

    def find(self, qualifier: str | None, name: str, place: str) -> Column:
        """Return the column of that name. Raises `UnknownName` or `AmbiguousName`."""
        columns = self._named(qualifier, name)
        if len(columns) == 1:
            return columns[0]
        if columns:
            both = " and ".join(f"`{c.qualifier}.{c.name}`" for c in columns)
            hint = f"write {both.split(' ')[0]}"
            if len({c.qualifier.lower() for c in columns}) == 1:
                hint = "two relations of one name, or two columns of one: give one of them another name with AS"
            raise AmbiguousName(f"column `{name}` is ambiguous", detail=f"{both} in {place}", hint=hint)
        shown = f"{qualifier}.{name}" if qualifier else name
        names = [c.name for c in self.columns if qualifier is None or c.qualifier.lower() == qualifier.lower()]
        shown_names = names or [
            f"{c.qualifier}.{c.name}" if c.qualifier else c.name for c in self.columns if not c.hidden
        ]
        listed = ", ".join(f"`{n}`" for n in dict.fromkeys(shown_names)) or "none"
        raise UnknownName(
            f"there is no column `{shown}`",
            detail=f"in {place}; columns here: {listed}",
            hint=self._left_out_hint(qualifier, name)
            or foreign_column(name)
            or near_misses(name, names)
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
        """Return a hint if a SEMI or ANTI join removed the column; empty otherwise."""
        relations = {c.qualifier.lower() for c in self.columns}
        for c in self.left_out:
            wanted, removed = (name, c.name) if qualifier is None else (qualifier, c.qualifier)
            if removed.lower() == (wanted or "").lower() and (qualifier is None or removed.lower() not in relations):
                return (
                    f"SEMI and ANTI JOIN leave the columns of `{c.qualifier}` out; INNER, LEFT and RIGHT JOIN keep them"
                )
        return ""

    def _hint(self, qualifier: str | None) -> str:
        relations = sorted({c.qualifier for c in self.columns if c.qualifier})
        if qualifier and qualifier.lower() not in [name.lower() for name in relations]:
            return f"relations here: {', '.join(relations) or 'none with a name'}"
        return "use one of these, or add the relation that has the column to FROM"

    def resolve(self, column: exp.Column) -> tuple[str, pa.DataType]:
        """Return the id and type of a column, written as `alias.column` or as a plain name."""
        if column.args.get("db"):
            text = column.sql(dialect="spark")
            raise InvalidSql(f"`{text}` has too many parts", detail=_place(column), hint="write alias.column")
        named = self._named(column.table or None, column.name)
        if len(named) == 1:  # the common case first: `_place`, needed for messages only, is slow
            return named[0].id, named[0].type
        place = _place(column)
        try:
            resolved = self.find(column.table or None, column.name, place)
        except UnknownName:
            outer = self._find_outside(column, place)
            if outer is None:
                raise
            resolved = outer
        return resolved.id, resolved.type

    def _find_outside(self, column: exp.Column, place: str) -> Column | None:
        """Return the column of the outer query; None if it has none, or if `a.b` may be a field of a column here."""
        if self.outer is None or any(c.name.lower() == column.table.lower() for c in self.columns):
            return None
        if self.outer.knows(column):
            return self.outer.find(column.table or None, column.name, place)
        return self.outer._find_outside(column, place)

    def knows(self, column: exp.Column) -> bool:
        """Return whether at least one column of that name is in scope."""
        name, qualifier = column.name.lower(), column.table.lower()
        return any(
            c.name.lower() == name and (c.qualifier.lower() == qualifier if qualifier else not c.hidden)
            for c in self.columns
        )

    def without_qualifiers(self, node: exp.Expr) -> exp.Expr:
        """Remove the qualifiers of columns, as Spark does in a generated name."""

        def bare(part: exp.Expr) -> exp.Expr:
            is_qualified = isinstance(part, exp.Column) and bool(part.table) and self.knows(part)
            return exp.column(part.this.copy()) if is_qualified else part

        return node if isinstance(node, exp.Column) else node.transform(bare)


@dataclass(frozen=True)
class Side:
    """One side of a join: its plan and its columns."""

    root: Node
    scope: Scope

    @property
    def parts(self) -> tuple[Node, Scope]:
        """Return both as a pair."""
        return self.root, self.scope


def _place(column: exp.Column) -> str:
    parent = column.find_ancestor(exp.Select)
    text = column.sql(dialect="spark")
    line = column.this.meta.get("line")
    is_named = isinstance(column.parent, exp.Alias)
    clause = column.parent.sql(dialect="spark") if column.parent and parent and not is_named else text
    return f"`{clause[:120]}`" + (f" (line {line})" if line else "")

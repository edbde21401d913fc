"""A part of a subquery whose conditions on the outer query are pulled up, to where the two are joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from rejoinder.ir.expressions.expression import Expression, column, literal, renamed, substitute
from rejoinder.ir.expressions.operators import when
from rejoinder.ir.logical import Node, Predicate, Project
from rejoinder.plan.blocks.normal_form import rewritten
from rejoinder.plan.blocks.padding import value_on_nulls
from rejoinder.plan.unnest.tree_columns import columns_of, identity


@dataclass(frozen=True)
class Pulled:
    """A tree that reads nothing of the outer query, and what makes the original tree of it for one outer row."""

    root: Node
    columns: Mapping[str, Expression]
    """The columns of the original tree, from those of `root` and of the outer query."""
    links: tuple[Predicate, ...] = ()
    """The conditions under which a row of `root` counts for an outer row."""
    empty: Mapping[str, Expression] | None = None
    """The columns of the one row that the original tree has if no row counts: that of an aggregate without keys."""
    domain: Mapping[str, str] = field(default_factory=dict)
    """The columns of the outer query that `root` has too, from their domain, and what they are called there."""

    @classmethod
    def of(cls, root: Node) -> Pulled:
        """A tree that reads nothing of the outer query."""
        return cls(root, identity(columns_of(root)))

    def inlined(self, predicates: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
        """Predicates on the columns of the original tree, as predicates on those of `root`."""
        return tuple(rewritten(predicate, self.computed) for predicate in predicates)

    def computed(self, expression: Expression) -> Expression:
        """An expression on the columns of the original tree, as one on those of `root`."""
        other = {i: e for i, e in self.columns.items() if not (e.is_column and e.columns == (i,))}
        return substitute(renamed(expression, self.domain), other)

    def projected(self, outputs: tuple[tuple[str, Expression], ...]) -> Pulled:
        """Compute other columns from those of the original tree."""
        columns = {i: self.computed(e) for i, e in outputs}
        empty = self.empty
        if empty is not None:
            empty = {i: _folded(substitute(e, empty)) for i, e in outputs}
        return replace(self, columns=columns, empty=empty)

    @property
    def read(self) -> set[str]:
        """All columns that its links and columns read."""
        listed = [*self.columns.values(), *(self.empty or {}).values(), *(p.expression for p in self.links)]
        return {i for e in listed for i in e.columns}


def padded(p: Pulled, flag: str) -> tuple[Node, dict[str, Expression]]:
    """The tree to be joined on the right side of a LEFT join, and its columns above the join.

    Where no row counts, they are those of the `empty` row, or NULL. If padding alone does not see to that, a column
    `flag` of the tree tells the two cases apart.
    """
    own = columns_of(p.root)
    plain = {i for i, e in p.columns.items() if _is_padding(e, own, None if p.empty is None else p.empty[i])}
    if len(plain) == len(p.columns):
        return p.root, dict(p.columns)
    root = Project(p.root, (*identity(own).items(), (flag, literal(True, pa.bool_()))))
    present = column(flag, pa.bool_()).node

    def guarded(i: str, e: Expression) -> Expression:
        default = literal(None, e.type) if p.empty is None else p.empty[i]
        return Expression(when(present, e.node, default.node), e.text)

    return root, {i: e if i in plain else guarded(i, e) for i, e in p.columns.items()}


def _is_padding(e: Expression, own: Mapping[str, pa.DataType], default: Expression | None) -> bool:
    """Whether the NULLs of padding make of an expression what it shall be there."""
    if (default is not None and not default.is_null) or not own.keys() >= set(e.columns) or not e.columns:
        return False
    value = value_on_nulls(e, own)
    return value is not None and not value.is_valid


def _folded(e: Expression) -> Expression:
    """An expression without columns as the NULL that it is, if it is that."""
    value = None if e.columns or e.is_null else value_on_nulls(e, {})
    return literal(None, e.type, e.text) if value is not None and not value.is_valid else e

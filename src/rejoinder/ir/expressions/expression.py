"""A scalar expression: a tree over columns, and the text that the user wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.comparisons import Comparison, comparisons_of
from rejoinder.ir.expressions.monotone import Monotone
from rejoinder.ir.expressions.nodes import Node


@dataclass(frozen=True)
class Expression:
    """A tree whose values and type are Spark's.

    `text` is what the user wrote, for messages; equality ignores it. With `repeats`, the value is a list, and the row
    is emitted once for each of its elements. At most one output of a projection may repeat rows.
    """

    node: Node
    text: str = field(default="", compare=False)
    repeats: bool = False

    @property
    def type(self) -> pa.DataType:
        """The type of the values; of a list that repeats the row, that of its elements."""
        return self.node.type.value_type if self.repeats else self.node.type

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, in order of appearance."""
        return self.node.columns

    @property
    def can_fail(self) -> bool:
        """Whether evaluation may fail on a row."""
        return self.node.can_fail

    @property
    def key(self) -> str:
        """The canonical form of the tree: the same for equal computations, and different for others."""
        return self.node.digest.hex()

    @property
    def is_column(self) -> bool:
        """Say whether this is a bare column, which needs no evaluation."""
        return isinstance(self.node, nodes.Column) and not self.repeats

    @property
    def is_null(self) -> bool:
        """Say whether this is NULL for every row."""
        return isinstance(self.node, nodes.Literal) and self.node.value is None

    @property
    def monotone(self) -> Monotone | None:
        """The column that the value (of a window: its start) is monotone in: itself, if it is one."""
        return self.node.monotone

    @property
    def conjuncts(self) -> tuple[Expression, ...]:
        """The conditions of a conjunction, each with the text that the user wrote; of another condition, itself."""
        if not isinstance(self.node, nodes.And):
            return (self,)
        pairs = zip(self.node.parts, self.node.texts, strict=True)
        return tuple(Expression(part, text or self.text) for part, text in pairs)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons that Arrow can answer, whose conjunction is TRUE for the same rows; empty if there are none."""
        return comparisons_of(self.node)


def column(name: str, kind: pa.DataType) -> Expression:
    """Make the expression that is a column."""
    return Expression(nodes.Column(name, kind), name)


def literal(value: Any, kind: pa.DataType, text: str = "") -> Expression:
    """Make the expression that is a value."""
    return Expression(nodes.Literal(value, kind), text)


def conjunction(predicates: Sequence[Expression]) -> Expression | None:
    """Make the predicate that all predicates are TRUE. Later ones are evaluated only where earlier ones are not FALSE.

    None stands for TRUE.
    """
    if len(predicates) < 2:
        return predicates[0] if predicates else None
    texts = [predicate.text for predicate in predicates]
    node = nodes.And([predicate.node for predicate in predicates], texts)
    return Expression(node, " AND ".join(texts) if all(texts) else "")


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Replace columns by expressions. An expression that is used more than once is evaluated once."""
    used = {name: columns[name] for name in expression.columns if name in columns}
    if not used:
        return expression
    if expression.is_column:
        return _with_zone_of(expression, used[expression.columns[0]])
    counts = nodes.uses(expression.node)
    # evaluated ahead of its place, a value could fail where it is guarded: share only what cannot fail
    shared = [name for name, inner in used.items() if counts[name] > 1 and not inner.can_fail]
    values = {name: inner.node for name, inner in used.items()}
    return replace(expression, node=_placed(expression.node, values, shared))


def _with_zone_of(column: Expression, value: Expression) -> Expression:
    """Return what takes the place of a column, with the zone of the column.

    A cast between the two kinds of timestamps changes only that label. Of a column, it is a column of another type, and
    not a `Cast` (see `sql.types.casts`).
    """
    if value.type == column.type or not (pa.types.is_timestamp(value.type) and pa.types.is_timestamp(column.type)):
        return value
    node = value.node
    if isinstance(node, nodes.Column):
        return replace(value, node=nodes.Column(node.name, column.type))
    return replace(value, node=nodes.Cast(node, column.type))


def _placed(root: Node, values: Mapping[str, Node], shared: Sequence[str]) -> Node:
    if shared:
        first, *rest = shared
        return nodes.let(values[first], lambda name: _placed(root, {**values, first: name}, rest))
    return nodes.rewrite(root, lambda node: values.get(node.name, node) if isinstance(node, nodes.Column) else node)


def renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Rename columns of an expression."""

    def rename(node: Node) -> Node:
        if isinstance(node, nodes.Column) and node.name in names:
            return nodes.Column(names[node.name], node.type)
        return node

    if not any(name in names for name in expression.columns):
        return expression
    return replace(expression, node=nodes.rewrite(expression.node, rename))

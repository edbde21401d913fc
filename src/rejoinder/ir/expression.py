"""What a scalar expression is: a tree over columns, and the text that the user wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from rejoinder.ir import nodes
from rejoinder.ir.comparisons import Comparison, comparisons_of
from rejoinder.ir.monotone import Monotone
from rejoinder.ir.nodes import Node


@dataclass(frozen=True)
class Expression:
    """A tree whose values and type are Spark's.

    `text` is what the user wrote, for messages; expressions with other texts are equal. With `repeats`, the value is a
    list, and the row comes out once for each of its elements. At most one output of a projection may do that.
    `conjuncts` are the parts of a conjunction, each with the text that the user wrote.
    """

    node: Node
    text: str = field(default="", compare=False)
    repeats: bool = False
    conjuncts: tuple[Expression, ...] = field(default=(), compare=False, repr=False)

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
        """The column that the value (of a window: its start) rises with: itself, if it is one."""
        return self.node.monotone

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """A conjunction that Arrow can answer, with the same TRUE rows; none if there is no such one."""
        return comparisons_of(self.node)


def column(name: str, kind: pa.DataType) -> Expression:
    """Make the expression that is a column as it stands."""
    return Expression(nodes.Column(name, kind), name)


def literal(value: Any, kind: pa.DataType, text: str = "") -> Expression:
    """Make the expression that is a value."""
    return Expression(nodes.Literal(value, kind), text)


def conjunction(predicates: Sequence[Expression]) -> Expression | None:
    """Make the predicate that all of several are TRUE; later ones see only the rows that earlier ones let through.

    None stands for true.
    """
    if len(predicates) < 2:
        return predicates[0] if predicates else None
    texts = [predicate.text for predicate in predicates]
    return Expression(
        nodes.And(predicate.node for predicate in predicates),
        " AND ".join(texts) if all(texts) else "",
        conjuncts=tuple(part for predicate in predicates for part in predicate.conjuncts or (predicate,)),
    )


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Put expressions in the place of columns; what is used often is evaluated once."""
    used = {name: columns[name] for name in expression.columns if name in columns}
    if not used:
        return expression
    if expression.is_column:
        return used[expression.columns[0]]
    counts = nodes.uses(expression.node)
    # evaluated ahead of its place a value could fail where it is guarded, so only what cannot fail is
    shared = [name for name, inner in used.items() if counts[name] > 1 and not inner.can_fail]
    return replace(
        expression,
        node=_placed(expression.node, {name: inner.node for name, inner in used.items()}, shared),
        conjuncts=tuple(substitute(part, columns) for part in expression.conjuncts),
    )


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
    conjuncts = tuple(renamed(part, names) for part in expression.conjuncts)
    return replace(expression, node=nodes.rewrite(expression.node, rename), conjuncts=conjuncts)

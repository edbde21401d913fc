"""Which columns the nodes of a logical tree have and read, and the same node over other inputs or columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column, renamed
from rejoinder.ir.logical import (
    Aggregate,
    Arrival,
    AtMostOne,
    Current,
    Distinct,
    Enrich,
    Expand,
    Filter,
    Join,
    Latest,
    Node,
    Predicate,
    Project,
    Records,
    Scan,
    Session,
    SetOperation,
    Validity,
    WindowCalls,
)
from rejoinder.plan.blocks.normal_form import rewritten

Types = dict[str, pa.DataType]


def columns_of(node: Node) -> Types:
    """The columns of a node: their types by identifier, in order."""
    match node:
        case Scan():
            return {i: node.schema.field(name).type for i, name in node.columns}
        case Filter():
            return columns_of(node.input)
        case Project():
            return {i: e.type for i, e in node.outputs}
        case Join() | Arrival():
            left = columns_of(node.left)
            return left if node.kind in ("semi", "anti") else {**left, **columns_of(node.right)}
        case SetOperation() | Distinct() | Latest() | Current():
            return dict(node.columns)
        case AtMostOne():
            return {**dict(node.columns), node.many: pa.bool_()}
        case Aggregate():
            return {**{i: e.type for i, e in node.keys}, **{i: call.type for i, call in node.calls}}
        case Expand():
            kept = {i: kind for i, kind in columns_of(node.input).items() if node.kept is None or i in node.kept}
            return {**kept, node.output: node.elements.type.value_type}
        case Validity():
            return {**dict(node.columns), node.end: dict(node.columns)[node.time]}
        case Session():
            return {**dict(node.columns), node.start: dict(node.columns)[node.time]}
        case WindowCalls():
            return {**dict(node.columns), **{i: call.type for i, call in node.calls}}
        case Enrich():
            return {**columns_of(node.input), **{i: kind for i, _, kind in node.answers}}
        case Records():
            return dict((*node.columns, *node.system))


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The inputs of a node, in order."""
    match node:
        case Scan():
            return ()
        case Join() | Arrival():
            return node.left, node.right
        case SetOperation():
            return node.inputs
        case _:
            return (node.input,)


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """The same node over other inputs."""
    match node:
        case Scan():
            return node
        case Join() | Arrival():
            return replace(node, left=inputs[0], right=inputs[1])
        case SetOperation():
            return replace(node, inputs=tuple(inputs))
        case _:
            return replace(node, input=inputs[0])


def expressions_of(node: Node) -> Iterator[Expression]:
    """The expressions of a node, without those of its inputs."""
    match node:
        case Filter() | Join() | Arrival():
            yield from (predicate.expression for predicate in node.predicates)
        case Project():
            yield from (e for _, e in node.outputs)
        case Aggregate():
            yield from (e for _, e in node.keys)
            yield from node.arguments
        case Expand():
            yield node.elements
        case _:
            pass


def free_columns(node: Node) -> frozenset[str]:
    """The columns that a tree reads and no node of it has: those of the outer query."""
    read = {i for e in expressions_of(node) for i in e.columns}
    for part in inputs_of(node):
        read |= free_columns(part)
    for part in inputs_of(node):
        read -= columns_of(part).keys()
    return frozenset(read)


def outer_references(node: Node) -> list[str]:
    """The columns of the outer query that a tree reads, each as often as it is written, from the top down."""
    free = free_columns(node)
    if not free:
        return []
    stack = [e.node for e in reversed(list(expressions_of(node)))]
    read: list[str] = []
    while stack:
        part = stack.pop()
        if not free.isdisjoint(part.columns):
            read += [part.name] if isinstance(part, nodes.Column) else []
            stack += reversed(part.parts)
    return [*read, *(i for inner in inputs_of(node) for i in outer_references(inner) if i in free)]


def can_fail(node: Node) -> bool:
    """Whether an expression of a tree may fail on a row."""
    return any(e.can_fail for e in expressions_of(node)) or any(map(can_fail, inputs_of(node)))


def with_renamed(node: Node, names: Mapping[str, str]) -> Node:
    """A tree that reads other columns in place of some that it does not have itself."""
    if not names:
        return node

    def change(expression: Expression) -> Expression:
        return renamed(expression, names)

    return _changed(with_inputs(node, [with_renamed(part, names) for part in inputs_of(node)]), change)


def renamed_predicates(predicates: Sequence[Predicate], names: Mapping[str, str]) -> tuple[Predicate, ...]:
    """Predicates on other columns."""
    return tuple(rewritten(predicate, lambda e: renamed(e, names)) for predicate in predicates)


def identity(types: Mapping[str, pa.DataType]) -> dict[str, Expression]:
    """Columns as they are, by identifier."""
    return {i: column(i, kind) for i, kind in types.items()}


def _changed(node: Node, change: Callable[[Expression], Expression]) -> Node:
    match node:
        case Filter() | Join() | Arrival():
            return replace(node, predicates=tuple(rewritten(p, change) for p in node.predicates))
        case Project():
            return replace(node, outputs=tuple((i, change(e)) for i, e in node.outputs))
        case Aggregate():
            keys = tuple((i, change(e)) for i, e in node.keys)
            return replace(node.with_arguments(change), keys=keys)
        case Expand():
            return replace(node, elements=change(node.elements))
        case _:
            return node

"""The normal form: a query as blocks (n-ary inner joins with filters and a projection) over relations.

Nested joins, filters and projections melt into one block; DISTINCT and UNION ALL become derived relations, named by
what they compute, so that equal subqueries of different views are one relation, with one state.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import pyarrow as pa

from rejoinder.kernels.evaluate import Expression, column
from rejoinder.plan.logical import (
    Distinct,
    Filter,
    Join,
    Node,
    Predicate,
    Project,
    Query,
    Scan,
    UnionAll,
    renamed,
    substitute,
)


@dataclass(frozen=True)
class Input:
    """One input of a block: a relation with the identifiers of its columns."""

    relation: str
    columns: tuple[tuple[str, str], ...]
    schema: pa.Schema


@dataclass(frozen=True)
class Block:
    """Select-project-join: pairs of all inputs for which the predicates are true, projected."""

    inputs: tuple[Input, ...]
    predicates: tuple[Predicate, ...]
    outputs: tuple[tuple[str, Expression], ...]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the result."""
        return pa.schema([(name, expression.type) for name, expression in self.outputs])

    @property
    def text(self) -> str:
        """Canonical text: equal for equal computations."""
        inputs = ", ".join(i.relation for i in self.inputs)
        where = " & ".join(sorted(p.expression.sql for p in self.predicates))
        outputs = ", ".join(f"{e.sql}::{e.type} as {name}" for name, e in self.outputs)
        return f"[{inputs} | {where} | {outputs}]"


@dataclass(frozen=True)
class Derived:
    """A relation made from blocks: their union, or (`distinct`) each row of it once."""

    name: str
    blocks: tuple[Block, ...]
    distinct: bool
    schema: pa.Schema


@dataclass
class Normalised:
    """A query in normal form: its block, and the derived relations it needs, inner ones first."""

    block: Block
    derived: dict[str, Derived] = field(default_factory=dict)


def normalise(query: Query) -> Normalised:
    """Bring a query to normal form."""
    derived: dict[str, Derived] = {}
    block = _block(query.root, derived)
    columns = dict(block.outputs)
    outputs = tuple((name, substitute(expression, columns)) for name, expression in query.outputs)
    return Normalised(canonical(Block(block.inputs, block.predicates, outputs)), derived)


def canonical(block: Block) -> Block:
    """Number the inputs and call each column `<input>.<name>`."""
    names = {old: f"{at}.{name}" for at, i in enumerate(block.inputs) for old, name in i.columns}
    inputs = tuple(
        Input(i.relation, tuple((f"{at}.{name}", name) for _, name in i.columns), i.schema)
        for at, i in enumerate(block.inputs)
    )
    predicates = tuple(_renamed_predicate(p, names) for p in block.predicates)
    return Block(inputs, predicates, tuple((name, _renamed(e, names)) for name, e in block.outputs))


def _renamed(expression: Expression, names: dict[str, str]) -> Expression:
    return renamed(expression, {old: new for old, new in names.items() if old in expression.columns})


def _renamed_predicate(predicate: Predicate, names: dict[str, str]) -> Predicate:
    equality = predicate.equality
    return Predicate(
        _renamed(predicate.expression, names),
        None if equality is None else (_renamed(equality[0], names), _renamed(equality[1], names)),
    )


def _block(node: Node, derived: dict[str, Derived]) -> Block:
    match node:
        case Scan():
            outputs = tuple((i, column(i, node.schema.field(name).type)) for i, name in node.columns)
            return Block((Input(node.relation, node.columns, node.schema),), (), outputs)
        case Filter():
            block = _block(node.input, derived)
            return Block(block.inputs, (*block.predicates, *_inlined(node.predicates, block)), block.outputs)
        case Project():
            block = _block(node.input, derived)
            columns = dict(block.outputs)
            outputs = tuple((i, substitute(expression, columns)) for i, expression in node.outputs)
            return Block(block.inputs, block.predicates, outputs)
        case Join():
            left, right = _block(node.left, derived), _block(node.right, derived)
            both = Block(
                (*left.inputs, *right.inputs),
                (*left.predicates, *right.predicates),
                (*left.outputs, *right.outputs),
            )
            return Block(both.inputs, (*both.predicates, *_inlined(node.predicates, both)), both.outputs)
        case UnionAll():
            blocks = []
            for part, selected in zip(node.inputs, node.selected, strict=True):
                block = _block(part, derived)
                columns = dict(block.outputs)
                outputs = tuple((f"c{at}", columns[i]) for at, i in enumerate(selected))
                blocks.append(canonical(Block(block.inputs, block.predicates, outputs)))
            return _derive("union", tuple(blocks), node.columns, derived)
        case Distinct():
            block = _block(node.input, derived)
            columns = dict(block.outputs)
            outputs = tuple((f"c{at}", columns[i]) for at, (i, _) in enumerate(node.columns))
            inner = canonical(Block(block.inputs, block.predicates, outputs))
            return _derive("distinct", (inner,), node.columns, derived)


def _inlined(predicates: tuple[Predicate, ...], block: Block) -> tuple[Predicate, ...]:
    columns = dict(block.outputs)
    result = []
    for p in predicates:
        equality = p.equality
        if equality is not None:
            equality = (substitute(equality[0], columns), substitute(equality[1], columns))
        result.append(Predicate(substitute(p.expression, columns), equality))
    return tuple(result)


def _derive(
    kind: str, blocks: tuple[Block, ...], columns: tuple[tuple[str, pa.DataType], ...], derived: dict[str, Derived]
) -> Block:
    text = f"{kind} {' + '.join(block.text for block in blocks)}"
    name = f"{kind}#{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
    schema = pa.schema([(f"c{at}", dtype) for at, (_, dtype) in enumerate(columns)])
    derived.setdefault(name, Derived(name, blocks, kind == "distinct", schema))
    ids = tuple((i, f"c{at}") for at, (i, _) in enumerate(columns))
    outputs = tuple((i, column(i, dtype)) for i, dtype in columns)
    return Block((Input(name, ids, schema),), (), outputs)

"""The normal form: a query as blocks (n-ary joins with filters and a projection) over relations.

Nested joins, filters and projections are flattened into one block. What a block cannot express becomes a derived
relation. Its name is a digest of its definition, so that equal subqueries of different views are one relation with one
state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from rejoinder.host.caps import cap_reached, caps
from rejoinder.ir.expressions.expression import Expression, column, renamed, substitute
from rejoinder.ir.identities import Defined, DerivedRows, OperationInput, RelationId, column_text
from rejoinder.ir.logical import EMIT_AT, GATE, Bound, Emission, Predicate, Query, bound_between

if TYPE_CHECKING:
    from rejoinder.plan.operations.operation import Operation

PRESENT = "__present"
RECORDED = ("_undo", "_epoch", "_emit_time")

Mode = Literal["inner", "left", "semi", "anti"]
Columns = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class VersionColumns:
    """The columns of validity windows: within its `partition`, a row is valid from its `time` to its `end`."""

    partition: tuple[str, ...]
    time: str
    end: str


@dataclass(frozen=True)
class Input:
    """One input of a block.

    - `inner`: pairs with its rows; all conditions are predicates of the block;
    - `left`: pairs with its rows that satisfy `on`, or with one row of NULLs if there is none. The pseudo column
      `__present` is TRUE in the former and NULL in the latter;
    - `semi`, `anti`: the row of the other inputs, if a row of this one satisfies `on`, or if none does. It has no
      columns.
    """

    relation: RelationId
    columns: tuple[tuple[str, str], ...]
    """Column ids and names."""
    schema: pa.Schema
    mode: Mode = "inner"
    on: tuple[Predicate, ...] = ()
    """If the mode is not `inner`: equalities with another input, conditions that read this input alone or other inputs
    alone, or the condition that a time of another input lies in a validity window. At arrival, any conditions."""
    versions: VersionColumns | None = None
    """The columns of its validity windows."""
    arrival: bool = False
    """Whether rows of the other inputs are joined with it at their arrival. Its own changes start no path."""
    match_inputs: int = 0
    """If not 0, the relation is the matched left rows of a join whose last so many inputs are the other side. Retained
    rows gain or lose a match only by changes of these inputs."""

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column by name."""
        return pa.bool_() if name == PRESENT else self.schema.field(name).type

    @property
    def text(self) -> str:
        """Canonical text."""
        at = " at arrival" if self.arrival else ""
        if self.mode == "inner":
            return f"{self.relation}{at}"
        return f"{self.mode} {self.relation}{at} on {' & '.join(sorted(p.expression.key for p in self.on))}"


@dataclass(frozen=True)
class Block:
    """Select-project-join: rows of all inputs, joined in their modes, filtered by the predicates, projected."""

    inputs: tuple[Input, ...]
    predicates: tuple[Predicate, ...]
    outputs: tuple[tuple[str, Expression], ...]
    optional: Expression | None = None
    """True for the row of an aggregate over no rows. If an expression fails on that row, the row does not exist."""

    @property
    def schema(self) -> pa.Schema:
        """Return names and types of the result."""
        return pa.schema([(name, expression.type) for name, expression in self.outputs])

    @property
    def columns(self) -> Columns:
        """Return column ids and types of the result."""
        return tuple((i, expression.type) for i, expression in self.outputs)

    @property
    def text(self) -> str:
        """Return the canonical text: equal for equal computations."""
        inputs = ", ".join(i.text for i in self.inputs)
        where = " & ".join(sorted(p.expression.key for p in self.predicates))
        outputs = ", ".join(f"{e.key} as {name}" for name, e in self.outputs)
        return f"[{inputs} | {where} | {outputs}]"


@dataclass(frozen=True)
class Derived:
    """A relation made from the rows of blocks by an operation."""

    id: Defined
    blocks: tuple[Block, ...]
    operation: Operation
    schema: pa.Schema

    @property
    def input(self) -> OperationInput:
        """What its operation reads, as a relation."""
        return OperationInput(self.id)


@dataclass
class Normalized:
    """A query in normal form."""

    block: Block
    """With an emit policy, the block has the hidden outputs `__emit_at` and, for several gates, `__gate`."""
    derived: dict[RelationId, Derived] = field(default_factory=dict)
    """The derived relations that the block reads, inner ones first."""
    emission: Emission | None = None


def finished(query: Query, block: Block, derived: dict[RelationId, Derived]) -> Normalized:
    """Apply the outputs of a query to the block of its tree."""
    columns = dict(block.outputs)
    outputs = tuple((name, substitute(expression, columns)) for name, expression in query.outputs)
    emit_time = query.emission.emit_time if query.emission is not None else None
    gate = query.emission.gate if query.emission is not None else None
    for name, hidden in ((EMIT_AT, emit_time), (GATE, gate)):
        if hidden is not None:
            outputs = (*outputs, (name, substitute(hidden, columns)))
    return Normalized(canonical(replace(block, outputs=outputs)), derived, query.emission)


def canonical(block: Block) -> Block:
    """Number the inputs and call each column `<input>.<name>`. Raises `LimitReached` if there are too many."""
    if len(block.inputs) > caps().max_join_inputs:
        remedy = "join some of them in a view with an index, which is not inlined"
        raise cap_reached("a join has too many inputs", "max_join_inputs", f"{len(block.inputs)} inputs", remedy=remedy)
    names = {old: column_text(at, name) for at, i in enumerate(block.inputs) for old, name in i.columns}

    def named(expression: Expression) -> Expression:
        return renamed(expression, {old: new for old, new in names.items() if old in expression.columns})

    inputs = tuple(
        replace(
            i,
            columns=tuple((column_text(at, name), name) for _, name in i.columns),
            on=tuple(rewritten(p, named) for p in i.on),
        )
        for at, i in enumerate(block.inputs)
    )
    predicates = tuple(rewritten(p, named) for p in block.predicates)
    optional = None if block.optional is None else named(block.optional)
    return Block(inputs, predicates, tuple((name, named(e)) for name, e in block.outputs), optional)


def read_columns(block: Block, at: int) -> frozenset[str]:
    """Return the names of the columns of an input that the block reads."""
    tests = [p.expression for p in (*block.predicates, *(p for each in block.inputs for p in each.on))]
    read = {i for expression in (*tests, *(e for _, e in block.outputs)) for i in expression.columns}
    versions = block.inputs[at].versions
    named = () if versions is None else (*versions.partition, versions.time, versions.end)
    return frozenset((*(name for i, name in block.inputs[at].columns if i in read), *named))


def rewritten(predicate: Predicate, change: Callable[[Expression], Expression]) -> Predicate:
    """Apply a function to all expressions of a predicate."""
    equality, order = predicate.equality, predicate.order

    def changed(bound: Bound) -> Bound | None:
        return bound_between(change(bound.later), change(bound.earlier), bound.steps)

    return replace(
        predicate,
        expression=change(predicate.expression),
        equality=None if equality is None else (change(equality[0]), change(equality[1])),
        order=None if order is None else (change(order[0]), change(order[1])),
        bounds=tuple(bound for bound in map(changed, predicate.bounds) if bound is not None),
    )


def inlined(predicates: tuple[Predicate, ...], outputs: Mapping[str, Expression]) -> tuple[Predicate, ...]:
    """Rewrite predicates on the outputs of a block as predicates on its inputs."""
    return tuple(rewritten(p, lambda e: substitute(e, outputs)) for p in predicates)


def selected(block: Block, ids: Sequence[str]) -> Block:
    """Return a block with some of its outputs."""
    outputs = dict(block.outputs)
    return replace(block, outputs=tuple((i, outputs[i]) for i in ids))


def derive(
    kind: str,
    operation: Operation,
    blocks: tuple[Block, ...],
    columns: Columns,
    derived: dict[RelationId, Derived],
    schema: pa.Schema | None = None,
) -> Block:
    """Add a derived relation and return the block that reads it; `columns` are the column ids of that block.

    The outputs of the blocks are renamed to `c0`, `c1`, … by position; `schema` is that of the relation if it differs.
    """
    named = tuple(
        canonical(replace(block, outputs=tuple((f"c{at}", e) for at, (_, e) in enumerate(block.outputs))))
        for block in blocks
    )
    text = f"{kind} {operation.text} {' + '.join(block.text for block in named)}"
    relation = DerivedRows(kind, hashlib.blake2b(text.encode(), digest_size=6).hexdigest())
    if schema is None:
        schema = pa.schema([(f"c{at}", dtype) for at, (_, dtype) in enumerate(columns)])
    derived.setdefault(relation, Derived(relation, named, operation, schema))
    ids = tuple((i, schema.names[at]) for at, (i, _) in enumerate(columns))
    outputs = tuple((i, column(i, dtype)) for i, dtype in columns)
    return Block((Input(relation, ids, schema, versions=operation.versions),), (), outputs)

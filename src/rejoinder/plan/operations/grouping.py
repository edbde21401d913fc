"""Aggregates in a dataflow: what is kept for them, and the step that keeps it.

- The groups themselves, one row each, by key: what an epoch adds to.
- For MIN and MAX the values, by key, if rows can be taken back: who takes the smallest away must know the next one. An
  append-only input needs none.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.catalog import LATE, REJECTED
from rejoinder.ir.expression import Expression, column, literal
from rejoinder.ir.nodes import Literal
from rejoinder.ir.operators import compared
from rejoinder.ir.source_variants import source_of
from rejoinder.plan.blocks.accumulators import ROWS, UNIT, UNIT_SCHEMA, Grouping, lay_out
from rejoinder.plan.blocks.normal_form import Block, Derived, Distinct, Enrichment, Input, Recording, Union, derive
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.steps import Aggregate
from rejoinder.plan.rounds.fragments import Fragment, Rounds
from rejoinder.plan.rounds.program import Program


def aggregated(node: logical.Aggregate, block: Block, known: dict[str, Derived]) -> Block:
    """The block that reads the groups of a block's rows. Without keys, a row without values is always one of them."""
    layout = lay_out(node, dict(block.outputs))
    blocks: tuple[Block, ...] = (replace(block, outputs=layout.inputs),)
    if not node.keys:
        nothing = tuple((i, literal(None, e.type)) for i, e in layout.inputs)
        blocks += (Block((Input(UNIT, ((f"{UNIT}.c0", "c0"),), UNIT_SCHEMA),), (), nothing),)
    groups = derive("aggregate", layout.grouping, blocks, layout.columns, known, layout.grouping.schema)
    if node.keys:
        return replace(groups, outputs=layout.results)
    (rows,) = [i for i, name in groups.inputs[0].columns if name == ROWS]
    alone = Expression(compared(column(rows, pa.int64()).node, "=", Literal(1, pa.int64())), "no rows")
    return replace(groups, outputs=layout.results, optional=alone)


def groups_arrangement(derived: Derived, grouping: Grouping) -> Arrangement:
    """The rows of the groups, by key, in which NULL is a value like any other."""
    return Arrangement(derived.name, _key(grouping), derived.schema)


def values_arrangement(program: Program, derived: Derived, grouping: Grouping) -> Arrangement | None:
    """The input's rows, by key, if values must be found again when others are taken back."""
    if not grouping.has_extremes or is_append_only(program, derived.name + "/input"):
        return None
    schema = pa.schema([(name, e.type) for name, e in derived.blocks[0].outputs])
    return Arrangement(derived.name + "/input", _key(grouping), schema)


def _key(grouping: Grouping) -> Key:
    parts = tuple(column(name, kind) for name, kind in zip(grouping.key_names, grouping.keys, strict=True))
    return Key(parts, frozenset(range(len(parts))))


def kept_arrangements(program: Program, derived: Derived, grouping: Grouping) -> list[Arrangement]:
    """All that is kept for an aggregate."""
    values = values_arrangement(program, derived, grouping)
    groups = groups_arrangement(derived, grouping)
    return [groups] if values is None else [groups, values]


def group(rounds: Rounds, derived: Derived, grouping: Grouping, *, whole: bool) -> None:
    """Turn the changes of `/input` into changes of the groups; `whole`: they are all there is."""
    program, inputs = rounds.program, derived.name + "/input"
    groups = groups_arrangement(derived, grouping)
    at = rounds.deliver(inputs, groups.key)
    change = rounds.stream(derived.name)
    values = values_arrangement(program, derived, grouping)
    step = Aggregate(
        at.stream,
        change,
        groups,
        grouping.key_names,
        grouping.accumulators,
        values,
        program.readers(derived.name),
        whole=whole,
    )
    rounds.add(at.round, step)
    rounds.arrange(inputs, check=False)
    rounds.fragments[derived.name] = [Fragment(at.round, change, groups.key.text, hashed=True)]
    rounds.arrange(derived.name, check=False)


def is_append_only(program: Program, relation: str) -> bool:
    """Whether rows of a relation (or `/input` of a derived one) are never taken back.

    Streams and notes are; filters, projections, inner and semi joins, unions, DISTINCT and enrichment of what is
    append-only are.
    """
    source = program.sources.get(source_of(relation))
    if source is not None:
        return source.kind == "stream"
    if relation == UNIT or relation.endswith((LATE, REJECTED)):
        return True
    if relation in program.views:
        return _appends(program, program.views[relation])
    derived = program.derived[relation.removesuffix("/input")]
    if isinstance(derived.operation, Recording) and not relation.endswith("/input"):
        return True
    if not relation.endswith("/input") and not isinstance(derived.operation, Union | Distinct | Enrichment):
        return False
    return all(_appends(program, block) for block in derived.blocks)


def _appends(program: Program, block: Block) -> bool:
    return all(
        each.arrival or (each.mode in ("inner", "semi") and is_append_only(program, each.relation))
        for each in block.inputs
    )

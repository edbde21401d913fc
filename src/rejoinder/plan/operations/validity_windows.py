"""Validity windows in a dataflow: the rows of a relation with the time until which each is valid.

What is kept is the relation itself, by partition and ordered by time, so that the neighbours of a time are found
however many versions a partition has.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.expression import column
from rejoinder.plan.blocks.normal_form import Block, Derived, Union, Versions, derive
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.steps import Validity
from rejoinder.plan.rounds.fragments import Fragment, Rounds


def valid(node: logical.Validity, block: Block, known: dict[str, Derived]) -> Block:
    """The block that reads a block's rows with their ends. A relation that is read as it is needs no copy."""
    outputs = dict(block.outputs)
    named = [outputs[i] for i in (*node.partition, node.time)]
    if len(block.inputs) > 1 or block.predicates or not all(e.is_column for e in named):
        block = derive("rows", Union(), (block,), block.columns, known)
        outputs = dict(block.outputs)
    (only,) = block.inputs
    names = dict(only.columns)
    end = "end"
    while end in only.schema.names:
        end = f"_{end}"
    versions = Versions(
        tuple(names[outputs[i].columns[0]] for i in node.partition), names[outputs[node.time].columns[0]], end
    )
    kind = only.schema.field(versions.time).type
    columns = (*((i, only.schema.field(name).type) for i, name in only.columns), (node.end, kind))
    schema = pa.schema([*((name, only.schema.field(name).type) for _, name in only.columns), (end, kind)])
    whole = replace(block, outputs=tuple((i, column(i, only.schema.field(name).type)) for i, name in only.columns))
    windows = derive("validity", versions, (whole,), columns, known, schema)
    return replace(windows, outputs=(*block.outputs, (node.end, column(node.end, kind))))


def versions_arrangement(derived: Derived, versions: Versions) -> Arrangement:
    """The relation whose rows get an end, by partition and ordered by time."""
    only = derived.blocks[0].inputs[0]
    parts = tuple(column(name, only.schema.field(name).type) for name in versions.partition)
    key = Key(parts, frozenset(range(len(parts))))
    return Arrangement(only.relation, key, only.schema, versions.time)


def validate(rounds: Rounds, derived: Derived, versions: Versions, *, whole: bool) -> None:
    """Turn the changes of the relation into changes of its rows with ends; `whole`: they are all there is."""
    arrangement = versions_arrangement(derived, versions)
    at = rounds.deliver(arrangement.relation, arrangement.key)
    change = rounds.stream(derived.name)
    rounds.add(at.round, Validity(at.stream, change, arrangement, versions.end, whole=whole))
    rounds.fragments[derived.name] = [Fragment(at.round, change, arrangement.key.text, hashed=True)]
    rounds.arrange(derived.name, check=False)

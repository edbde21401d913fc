"""Lineage: the columns of sources that a column of a query is made from."""

from __future__ import annotations

from collections.abc import Mapping

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import RelationId, source_of
from rejoinder.plan.blocks.normal_form import Block, Derived

Origin = tuple[str, str]


def origins(expression: Expression, block: Block, derived: Mapping[RelationId, Derived]) -> set[Origin]:
    """The (source, column) pairs that an expression over a block's inputs is made from."""
    owner = {i: (each.relation, name) for each in block.inputs for i, name in each.columns}
    return {origin for i in expression.columns for origin in origins_of(*owner[i], derived)}


def origins_of(relation: RelationId, name: str, derived: Mapping[RelationId, Derived]) -> set[Origin]:
    """The (source, column) pairs that a column of a relation is made from."""
    made = derived.get(relation)
    if made is None:
        return {(source_of(relation), name)}
    return {
        origin
        for block in made.blocks
        for expression in made.operation.lineage(made, block, name)
        for origin in origins(expression, block, derived)
    }


def versions_of(block: Block, derived: Mapping[RelationId, Derived]) -> set[Origin]:
    """The times of the versions that a block reads, through derived relations too."""
    times: set[Origin] = set()
    for made in (derived[each.relation] for each in block.inputs if each.relation in derived):
        if made.operation.versions is not None:
            times |= origins_of(made.id, made.operation.versions.time, derived)
        for inner in made.blocks:
            times |= versions_of(inner, derived)
    return times


def sources_of(block: Block, derived: Mapping[RelationId, Derived]) -> set[str]:
    """All sources that a block reads, through derived relations too."""
    sources: set[str] = set()
    for each in block.inputs:
        made = derived.get(each.relation)
        if made is None:
            sources.add(source_of(each.relation))
        else:
            sources |= {name for inner in made.blocks for name in sources_of(inner, derived)}
    return sources

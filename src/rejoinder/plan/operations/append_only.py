"""Which relations are append-only: their rows are never retracted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rejoinder.ir.catalog import Source
from rejoinder.ir.identities import RelationId, SideOutput, UnitRow, source_of
from rejoinder.plan.blocks.normal_form import Derived

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program


def is_append_only(program: Program, relation: RelationId) -> bool:
    """Whether rows of a relation are never retracted: streams, side outputs, and what keeps that property of them."""
    return _is_append_only(program.sources, program.relations, relation)


def has_append_only_input(program: Program, made: Derived) -> bool:
    """Whether rows of the blocks of a derived relation are never retracted."""
    return appends(program.sources, program.relations, made)


def appends(sources: Mapping[str, Source], relations: Mapping[RelationId, Derived], made: Derived) -> bool:
    """Whether rows of the blocks of a derived relation are never retracted. `relations` contains the views."""
    return all(
        each.arrival or (each.mode in ("inner", "semi") and _is_append_only(sources, relations, each.relation))
        for block in made.blocks
        for each in block.inputs
    )


def _is_append_only(
    sources: Mapping[str, Source], relations: Mapping[RelationId, Derived], relation: RelationId
) -> bool:
    source = sources.get(source_of(relation))
    if source is not None:
        return source.kind == "stream"
    if isinstance(relation, UnitRow | SideOutput):
        return True
    made = relations[relation]
    return made.operation.is_append_only(input_is=appends(sources, relations, made))

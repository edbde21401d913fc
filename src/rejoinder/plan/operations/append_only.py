"""Which relations are append-only: their rows are never retracted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoinder.ir.identities import RelationId, SideOutput, UnitRow, ViewRows, source_of
from rejoinder.plan.blocks.normal_form import Block, Derived

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program


def is_append_only(program: Program, relation: RelationId) -> bool:
    """Whether rows of a relation are never retracted: streams, side outputs, and what keeps that property of them."""
    source = program.sources.get(source_of(relation))
    if source is not None:
        return source.kind == "stream"
    if isinstance(relation, UnitRow | SideOutput):
        return True
    if isinstance(relation, ViewRows):
        return _appends(program, program.views[relation.view])
    made = program.derived[relation]
    return made.operation.is_append_only(input_is=has_append_only_input(program, made))


def has_append_only_input(program: Program, made: Derived) -> bool:
    """Whether rows of the blocks of a derived relation are never retracted."""
    return all(_appends(program, block) for block in made.blocks)


def _appends(program: Program, block: Block) -> bool:
    return all(
        each.arrival or (each.mode in ("inner", "semi") and is_append_only(program, each.relation))
        for each in block.inputs
    )

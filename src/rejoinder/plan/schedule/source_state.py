"""Which rows of a source are read, and which are kept: by primary key, to check deletes, or to fill later views.

A delete of a changelog is checked against its relation wherever a view could get a negative count from it:
- the on-time rows, as long as their deletes are on time. A late delete never reaches them;
- every row, late ones included, while a view follows all changes of the source. So its rows do not expire.
Otherwise late deletes are not checked: they reach no view. An arrangement never checks the delete of a row that may
have expired from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoinder.connectors.registry import source_side
from rejoinder.ir.catalog import Source
from rejoinder.ir.expressions.expression import column
from rejoinder.ir.identities import OperationInput, RelationId, SourceRows, ViewRows, is_on_time
from rejoinder.plan.physical.dataflow import Purpose
from rejoinder.plan.physical.fragments import Fragment
from rejoinder.plan.physical.steps import Derive
from rejoinder.plan.rounds.program import base_arrangement, row_arrangement
from rejoinder.plan.time.retention import retained_bounds
from rejoinder.plan.time.start_condition import not_before

if TYPE_CHECKING:
    from rejoinder.plan.schedule.dataflow_builder import Builder

LATER_VIEWS: Purpose = "source"
"""The user of an arrangement that is kept to check deletes, and to fill later views."""

DELETES: Purpose = "deletes"
"""The user of an arrangement of a changelog since a time, which is kept to check deletes."""


def keep_source(builder: Builder, source: Source) -> None:
    """Require the arrangements of a source that no lookup asks for. Called after those of all lookups."""
    base, variants = base_arrangement(source), builder.variants(source.name)
    on_time = [relation for relation in variants if relation.on_time]
    if source.retains_all:
        builder.require(base, "retain")
    elif source.retained is not None and source.kind != "table":
        builder.require(base, "retain", [(limit,) for limit in retained_bounds(source)])
    if source.kind == "changelog":
        _keep_deletable_rows(builder, source, on_time)
        _keep_followed_rows(builder, source, variants)
    if source.kind == "table":
        builder.require(base, "primary key")
    elif source.relation not in builder.needed and not is_kept_outside(source):
        if not any(_expires(builder, relation) for relation in on_time) or _is_lost(builder, source):
            if not source.incomplete:
                builder.require(base, LATER_VIEWS)
        elif source.kind == "changelog":
            for relation in on_time:
                if relation not in builder.needed:
                    own = builder.retentions.for_relation(relation, source.schema.names)
                    builder.require(row_arrangement(relation, source.schema), LATER_VIEWS, own)


def _keep_deletable_rows(builder: Builder, changelog: Source, on_time: list[SourceRows]) -> None:
    """Keep on-time rows in their arrangements for as long as a delete of them would be on time."""
    for relation in on_time:
        for arrangement in builder.needed.get(relation, {}).values():
            builder.retentions.add_user(arrangement, builder.retentions.for_relation(relation, changelog.schema.names))


def rows_since(builder: Builder, relation: SourceRows, fragments: list[Fragment]) -> list[Fragment]:
    """Return the rows of a source since the time at which a view starts; without one, all of them."""
    if relation.time is None:
        return fragments
    source, result = builder.program.sources[relation.source], []
    rows = tuple((field.name, column(field.name, field.type)) for field in source.schema)
    for fragment in fragments:
        stream = builder.stream(relation)
        builder.add(fragment.round, Derive(fragment.stream, stream, not_before(source, relation.time), rows))
        result.append(Fragment(fragment.round, stream))
    return result


def _keep_followed_rows(builder: Builder, changelog: Source, variants: list[SourceRows]) -> None:
    """Keep every row of the relations of a changelog whose changes, late ones included, some view follows.

    A join at arrival looks rows up and does not follow their changes. A changelog in memory is kept as a whole anyway.
    """
    inputs = [each for joins in builder.joins.values() for join in joins for each in join.block.inputs]
    followed = {each.relation for each in inputs if not each.arrival}
    followed |= {changelog.relation} if source_side(changelog).keeps_changes else set()
    users: dict[RelationId, Purpose] = dict.fromkeys(variants, DELETES)
    users |= {} if changelog.incomplete else {changelog.relation: LATER_VIEWS}
    for relation, user in users.items():
        kept = [builder.retentions.of(arrangement) for arrangement in builder.needed.get(relation, {}).values()]
        if relation in followed and not is_on_time(relation) and None not in kept:
            builder.require(row_arrangement(relation, changelog.schema), user)


def is_kept_outside(source: Source) -> bool:
    """Whether a stream needs no arrangement for later views: they read its files again, or its own changelog.

    A second copy of every row would cost more than most views of one stream do. The deletes of a changelog need it.
    """
    side = source_side(source)
    is_read_again = side.keeps_files(source) and source.max_ahead is None
    return source.kind == "stream" and (side.keeps_changes or is_read_again)


def _is_lost(builder: Builder, source: Source) -> bool:
    """Whether views that take every row of a source would be the last to see it: it cannot be read again."""
    side = source_side(source)
    is_kept = side.keeps_changes or side.keeps_files(source)
    return not is_kept and any(builder.program.reads(ViewRows(view), source.relation) for view in builder.program.views)


def _expires(builder: Builder, relation: RelationId) -> bool:
    """Whether rows of a relation, or what is made from them, expire somewhere."""
    for kept, arrangements in builder.needed.items():
        maker = kept.of if isinstance(kept, OperationInput) else kept
        if (kept == relation or builder.program.reads(maker, relation)) and any(
            builder.retentions.of(each) for each in arrangements.values()
        ):
            return True
    for block in (join.block for joins in builder.joins.values() for join in joins):
        met = [a for each in block.inputs if each.arrival for a in builder.needed[each.relation].values()]
        comes = any(each.relation == relation and not each.arrival for each in block.inputs)
        if comes and any(builder.retentions.of(each) for each in met):
            return True  # its rows are not kept, and the rows that they are joined with at arrival expire
    return False

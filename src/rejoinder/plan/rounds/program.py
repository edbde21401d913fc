"""The program: what a catalog's views need, before anything is scheduled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.expression import column
from rejoinder.ir.identities import (
    DerivedRows,
    OperationInput,
    RelationId,
    SideOutput,
    ViewRows,
    side_output,
    source_of,
)
from rejoinder.plan.blocks.normal_form import Block, Derived
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.operations.union import as_relation
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.dataflow import User
from rejoinder.watermarks.formula import Formula, watermarks_in


@dataclass(frozen=True)
class Gate:
    """When the changes of a view come out.

    - with an `interval` (microseconds): at every multiple of it on the clock;
    - else when `limit`, which is made of watermarks, has reached the release of a row. A view may have several gates:
      then the `__gate` of a row is the `number` of its gate. Rows may wait for a `partner`: the limit is of its time.
    """

    view: str
    pending: Arrangement
    interval: int = 0
    limit: Formula | None = None
    number: int = 0
    partner: bool = False

    @property
    def origins(self) -> tuple[tuple[str, str], ...]:
        """The watermarks, as source and column, that it waits for."""
        found = [] if self.limit is None else [(each.source, each.column) for each in watermarks_in(self.limit)]
        return tuple(sorted(dict.fromkeys(found), key=lambda origin: origin[0]))


@dataclass(frozen=True)
class Program:
    """What is to be kept up to date: sources, derived relations (inner ones first), views, indexes."""

    sources: Mapping[str, Source]
    derived: Mapping[RelationId, Derived]
    views: Mapping[str, Block]
    indexes: tuple[Arrangement, ...]
    statistics: Mapping[str, Statistics] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()

    @property
    def relations(self) -> dict[RelationId, Derived]:
        """The derived relations, and the views as if they were some."""
        views = (as_relation(name, block) for name, block in self.views.items())
        return {**self.derived, **{view.id: view for view in views}}

    def maker(self, relation: RelationId) -> Derived | None:
        """The derived relation that a relation is, or whose operation reads it; None if there is none."""
        return self.derived.get(relation.of if isinstance(relation, OperationInput) else relation)

    def gates_of(self, view: str) -> tuple[Gate, ...]:
        """The gates of a view; none if its changes come out when they happen."""
        return tuple(gate for gate in self.gates if gate.view == view)

    def readers(self, relation: RelationId) -> tuple[str, ...]:
        """The views that read a relation, directly or through others."""
        readers, relations = {relation}, self.relations.values()
        while True:
            inputs = (
                (made.id, block_input) for made in relations for block in made.blocks for block_input in block.inputs
            )
            more = {reader for reader, block_input in inputs if block_input.relation in readers}
            if more <= readers:
                return tuple(name for name in self.views if ViewRows(name) in readers)
            readers |= more

    def named(self, users: Iterable[User]) -> list[str]:
        """Users as people know them: in place of derived relations, the views that read them."""
        named = [self.readers(user) if isinstance(user, DerivedRows) else (str(user),) for user in users]
        return list(dict.fromkeys(name for names in named for name in names))


def base_arrangement(source: Source) -> Arrangement:
    """The arrangement that a source has in any case: by primary key, or else by the whole row."""
    if source.primary_key:
        key = Key(tuple(column(name, source.schema.field(name).type) for name in source.primary_key))
        return Arrangement(source.relation, key, source.schema)
    return row_arrangement(source.relation, source.schema)


def row_arrangement(relation: RelationId, schema: pa.Schema) -> Arrangement:
    """An arrangement by the whole row, in which NULL is a value like any other."""
    return Arrangement.by_row(relation, schema)


def program_of(
    catalog: Catalog,
    blocks: Mapping[str, tuple[Block, Mapping[RelationId, Derived]]],
    statistics: Mapping[str, Statistics],
) -> Program:
    """Collect what the views of a catalog need.

    Sources that no view, index or sink reads stay out, to be read from their start when one does. A source in memory
    has no start to go back to: it is always kept.
    """
    derived: dict[RelationId, Derived] = {}
    for _, inner in blocks.values():
        derived |= inner
    indexes = []
    for index in catalog.indexes:
        relation = catalog.get(index.relation)
        key = Key(tuple(column(name, relation.schema.field(name).type) for name in index.columns))
        indexes.append(Arrangement(relation.relation, key, relation.schema))
    blocks_read = [block for block, _ in blocks.values()] + [block for d in derived.values() for block in d.blocks]
    read = {block_input.relation for block in blocks_read for block_input in block.inputs}
    read |= {index.relation for index in indexes} | {
        side_output(sink.view) or ViewRows(sink.view) for sink in catalog.sinks
    }
    used = {relation.owner if isinstance(relation, SideOutput) else source_of(relation) for relation in read}
    used |= {
        source.name for source in catalog.sources if source_side(source).keeps_changes or "retain" in source.options
    }
    sources = {source.name: source for source in catalog.sources if source.name in used}
    views = {name: block for name, (block, _) in blocks.items()}
    return Program(sources, derived, views, tuple(indexes), statistics)

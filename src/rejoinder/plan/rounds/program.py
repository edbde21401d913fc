"""The program: sources, derived relations, views and gates of a catalog, before anything is scheduled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.expressions.expression import column
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
    """When the changes of a view are emitted."""

    view: str
    pending: Arrangement
    """The changes that are not emitted yet."""
    interval: int = 0
    """If not 0: changes are emitted at every multiple of this on the clock, in microseconds."""
    limit: Formula | None = None
    """Otherwise: a row is emitted once this formula over watermarks has reached its emit time."""
    number: int = 0
    """If a view has several gates, those of a row with this number in `__gate`."""
    awaits_match: bool = False
    """Whether rows without a match are pending here; then the limit is the watermark of the other side."""
    is_inside: bool = False
    """Whether it belongs to an operation inside of a view, whose step emits what is due by the clock."""

    @property
    def origins(self) -> tuple[tuple[str, str], ...]:
        """Return the watermarks, as source and column, of the limit."""
        found = [] if self.limit is None else [(each.source, each.column) for each in watermarks_in(self.limit)]
        return tuple(sorted(dict.fromkeys(found), key=lambda origin: origin[0]))


@dataclass(frozen=True)
class Program:
    """What a dataflow maintains: sources, derived relations (inner ones first), views, indexes."""

    sources: Mapping[str, Source]
    derived: Mapping[RelationId, Derived]
    views: Mapping[str, Block]
    indexes: tuple[Arrangement, ...]
    statistics: Mapping[str, Statistics] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()

    @property
    def relations(self) -> dict[RelationId, Derived]:
        """Return the derived relations, and the views as derived relations."""
        views = (as_relation(name, block) for name, block in self.views.items())
        return {**self.derived, **{view.id: view for view in views}}

    def maker(self, relation: RelationId) -> Derived | None:
        """The derived relation that a relation is, or whose operation reads it; None if there is none."""
        return self.derived.get(relation.of if isinstance(relation, OperationInput) else relation)

    def gates_of(self, view: str) -> tuple[Gate, ...]:
        """Return the gates of a view; none for EMIT CHANGES."""
        return tuple(gate for gate in self.gates if gate.view == view)

    def readers(self, relation: RelationId) -> tuple[str, ...]:
        """Return the views that read a relation, directly or through others."""
        readers = self.with_readers([relation])
        return tuple(name for name in self.views if ViewRows(name) in readers)

    def with_readers(self, relations: Iterable[RelationId]) -> set[RelationId]:
        """Return relations, and the views and derived relations that read them, directly or through others."""
        readers: set[RelationId] = set()
        more = set(relations)
        while more:
            readers |= more
            more = {reader for read in more for reader in self._direct_readers.get(read, ())} - readers
        return readers

    def reads(self, reader: RelationId, relation: RelationId) -> bool:
        """Return whether a view or derived relation reads another relation, directly or through others."""
        return relation in self._read_by(reader)

    def _read_by(self, reader: RelationId) -> set[RelationId]:
        """Return all relations that a view or derived relation reads; cached, because many paths may lead to one."""
        if reader not in self._read:
            found: set[RelationId] = set()
            pending = [reader]
            while pending:
                made = self._made.get(pending.pop())
                blocks = () if made is None else made.blocks
                more = {each.relation for block in blocks for each in block.inputs} - found
                found |= more
                pending += more
            self._read[reader] = found
        return self._read[reader]

    @cached_property
    def _made(self) -> dict[RelationId, Derived]:
        return self.relations

    @cached_property
    def _read(self) -> dict[RelationId, set[RelationId]]:
        return {}

    @cached_property
    def _direct_readers(self) -> dict[RelationId, set[RelationId]]:
        """The relations that read each relation."""
        result: dict[RelationId, set[RelationId]] = {}
        for made in self.relations.values():
            for each in (each for block in made.blocks for each in block.inputs):
                result.setdefault(each.relation, set()).add(made.id)
        return result

    def named(self, users: Iterable[User]) -> list[str]:
        """Return the names of users; a derived relation is replaced by the views that read it."""
        named = [self.readers(user) if isinstance(user, DerivedRows) else (str(user),) for user in users]
        return list(dict.fromkeys(name for names in named for name in names))


def base_arrangement(source: Source) -> Arrangement:
    """Return the base arrangement of a source: by primary key, or by the whole row."""
    if source.primary_key:
        key = Key(tuple(column(name, source.schema.field(name).type) for name in source.primary_key))
        return Arrangement(source.relation, key, source.schema)
    return row_arrangement(source.relation, source.schema)


def row_arrangement(relation: RelationId, schema: pa.Schema) -> Arrangement:
    """Return the arrangement by the whole row, in which NULL is a value."""
    return Arrangement.by_row(relation, schema)


def program_of(
    catalog: Catalog,
    blocks: Mapping[str, tuple[Block, Mapping[RelationId, Derived]]],
    statistics: Mapping[str, Statistics],
) -> Program:
    """Collect the relations that the views of a catalog need.

    Sources that no view, index or sink reads are left out; they are read from their start once one does. A source in
    memory cannot be read again, so it is always included.
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

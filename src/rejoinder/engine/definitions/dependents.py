"""What depends on what in a catalog: the readers of a relation, and the sources that a definition reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rejoinder.errors import UnknownName
from rejoinder.ir.catalog import Catalog, Index, Sink, Source, View
from rejoinder.sql.bind.binder import bind_view
from rejoinder.sql.statements.query_text import named_relations

Defined = Source | View | Index | Sink
Key = tuple[str, str]
"""The namespace of a definition, and its name in lower case."""


def key_of(definition: Defined) -> Key:
    """The key of a definition. Relations share one namespace; indexes and sinks have their own."""
    match definition:
        case Index():
            return ("index", definition.name.lower())
        case Sink():
            return ("sink", definition.name.lower())
        case _:
            return ("relation", definition.name.lower())


def definitions_of(catalog: Catalog) -> tuple[Defined, ...]:
    """All definitions of a catalog; each comes after what it reads."""
    return (*catalog.relations, *catalog.indexes, *catalog.sinks)


def without(catalog: Catalog, keys: Iterable[Key]) -> Catalog:
    """The catalog without some definitions."""
    gone = set(keys)
    return Catalog(
        tuple(relation for relation in catalog.relations if key_of(relation) not in gone),
        tuple(index for index in catalog.indexes if key_of(index) not in gone),
        tuple(sink for sink in catalog.sinks if key_of(sink) not in gone),
    )


def with_dependents(catalog: Catalog, definition: Defined) -> list[Defined]:
    """A definition and everything that reads it, directly or through views, in the order of the catalog."""
    if isinstance(definition, Index | Sink):
        return [definition]
    gone = {key_of(definition)}
    for view in catalog.views:
        owners = {("relation", _owner(name)) for name in named_relations(view.query)}
        if owners & gone and not _binds(view, without(catalog, gone)):
            gone.add(key_of(view))
    found = [relation for relation in catalog.relations if key_of(relation) in gone]
    indexes = [index for index in catalog.indexes if ("relation", index.relation.lower()) in gone]
    sinks = [sink for sink in catalog.sinks if ("relation", _owner(sink.view)) in gone]
    return [*found, *indexes, *sinks]


def sources_of(catalog: Catalog, definition: Defined) -> set[str]:
    """The names of the sources that a definition reads, directly or through views."""
    if isinstance(definition, Source):
        return {definition.name}
    result: set[str] = set()
    for name in _read_by(definition):
        relation = catalog.find(_owner(name))
        if relation is not None and relation is not definition:
            result |= sources_of(catalog, relation)
    return result


def _read_by(definition: View | Index | Sink) -> Iterator[str]:
    match definition:
        case View():
            yield from named_relations(definition.query)
        case Index():
            yield definition.relation
        case Sink():
            yield definition.view


def _owner(name: str) -> str:
    """The relation to which a name belongs: `v` for `v.late`."""
    return name.partition(".")[0].lower()


def _binds(view: View, catalog: Catalog) -> bool:
    """Whether a view can do without what the catalog lacks: its own WITH may use the same name."""
    try:
        bind_view(view, catalog)
    except UnknownName:
        return False
    return True

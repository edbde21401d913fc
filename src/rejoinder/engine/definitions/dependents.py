"""Dependencies in a catalog: the dependents of a relation, and the sources that a definition reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rejoinder.errors import UnknownName
from rejoinder.ir.catalog import Catalog, Index, Sink, Source, View
from rejoinder.ir.identities import owner_of
from rejoinder.ir.user_functions import UserFunction
from rejoinder.sql.bind.bind_query import bind_view
from rejoinder.sql.statements.query_text import calls_function, named_relations

Defined = Source | View | Index | Sink | UserFunction
Key = tuple[str, str]
"""The namespace of a definition, and its name in lower case."""


def key_of(definition: Defined) -> Key:
    """Return the key of a definition. Relations share one namespace; indexes, sinks and functions have their own."""
    match definition:
        case Index():
            return ("index", definition.name.lower())
        case Sink():
            return ("sink", definition.name.lower())
        case UserFunction():
            return ("function", definition.name.lower())
        case _:
            return ("relation", definition.name.lower())


def definitions_of(catalog: Catalog) -> tuple[Defined, ...]:
    """Return all definitions of a catalog, each after the relations that it reads."""
    return (*catalog.functions, *catalog.relations, *catalog.indexes, *catalog.sinks)


def without(catalog: Catalog, keys: Iterable[Key]) -> Catalog:
    """Return the catalog without some definitions."""
    removed = set(keys)
    return replace(
        catalog,
        relations=tuple(relation for relation in catalog.relations if key_of(relation) not in removed),
        indexes=tuple(index for index in catalog.indexes if key_of(index) not in removed),
        sinks=tuple(sink for sink in catalog.sinks if key_of(sink) not in removed),
        functions=tuple(function for function in catalog.functions if key_of(function) not in removed),
    )


def with_dependents(catalog: Catalog, definition: Defined) -> list[Defined]:
    """Return a definition and all its dependents, direct or through views, in the order of the catalog."""
    if isinstance(definition, Index | Sink):
        return [definition]
    keys = {key_of(definition)}
    for view in catalog.views:
        owners = {("relation", _owner(name)) for name in named_relations(view.query)}
        is_caller = isinstance(definition, UserFunction) and calls_function(view.query, definition)
        if is_caller or (owners & keys and not _binds(view, without(catalog, keys))):
            keys.add(key_of(view))
    relations = [relation for relation in catalog.relations if key_of(relation) in keys]
    indexes = [index for index in catalog.indexes if ("relation", index.relation.lower()) in keys]
    sinks = [sink for sink in catalog.sinks if ("relation", _owner(sink.view)) in keys]
    functions = [definition] if isinstance(definition, UserFunction) else []
    return [*functions, *relations, *indexes, *sinks]


def sources_of(catalog: Catalog, definition: Defined) -> set[str]:
    """Return the names of the sources that a definition reads, directly or through views.

    For a function, these are the sources of the views that call it.
    """
    if isinstance(definition, Source):
        return {definition.name}
    result: set[str] = set()
    if isinstance(definition, UserFunction):
        views = (view for view in catalog.views if calls_function(view.query, definition))
        return result.union(*(sources_of(catalog, view) for view in views))
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
    """Return the relation of a side output, in lower case: `v` for `v.late`."""
    return owner_of(name).lower()


def _binds(view: View, catalog: Catalog) -> bool:
    """Return whether a view binds to a catalog without some relation: its WITH may define the same name."""
    try:
        bind_view(view, catalog)
    except UnknownName:
        return False
    return True

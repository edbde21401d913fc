"""Other names for views: in a catalog, and in the identities of relations. No view may read a renamed one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rejoinder.ir.catalog import Catalog, View
from rejoinder.ir.identities import OperationInput, PendingRows, RelationId, SideOutput, ViewRows, owner_of

Names = Mapping[str, str]
"""New names by old ones."""


def renamed_catalog(catalog: Catalog, names: Names) -> Catalog:
    """Return the catalog in which views have other names. Their indexes and sinks follow."""
    return replace(
        catalog,
        relations=tuple(
            replace(relation, name=names.get(relation.name, relation.name)) if isinstance(relation, View) else relation
            for relation in catalog.relations
        ),
        indexes=tuple(replace(index, relation=names.get(index.relation, index.relation)) for index in catalog.indexes),
        sinks=tuple(replace(sink, view=renamed_text(sink.view, names)) for sink in catalog.sinks),
    )


def renamed_text(name: str, names: Names) -> str:
    """Return the new name of a view, or of a side output of a view: `w.late` for `v.late`."""
    owner = owner_of(name)
    return names[owner] + name.removeprefix(owner) if owner in names else name


def renamed_relation(relation: RelationId, names: Names) -> RelationId:
    """Return the identity of a relation after views got other names."""
    match relation:
        case ViewRows():
            return ViewRows(names.get(relation.view, relation.view))
        case PendingRows():
            return replace(relation, view=names.get(relation.view, relation.view))
        case SideOutput():
            return replace(relation, owner=names.get(relation.owner, relation.owner))
        case OperationInput(of=ViewRows() as view):
            return OperationInput(ViewRows(names.get(view.view, view.view)))
        case _:
            return relation

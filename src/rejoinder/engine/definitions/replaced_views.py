"""CREATE OR REPLACE VIEW and ALTER VIEW on a catalog: define a view in place of another, and check what reads it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pyarrow as pa

from rejoinder.engine.definitions.definition_statements import as_statement, check_name, defined, existing_view
from rejoinder.engine.definitions.dependents import Defined, Key, key_of, with_dependents
from rejoinder.errors import DefinitionConflict, UnknownName
from rejoinder.ir.catalog import Catalog, Index, View
from rejoinder.ir.evolution.column_changes import ColumnChange, new_names
from rejoinder.ir.new_names import renamed_catalog
from rejoinder.sql.statements.query_text import named_relations
from rejoinder.sql.statements.statement_parser import AlterView, CreateView, RenameView
from rejoinder.sql.types.spark_types import spark_name


def as_replacement(catalog: Catalog, statement: AlterView) -> CreateView:
    """Return ALTER VIEW … AS as CREATE OR REPLACE VIEW, with the options and the start that the view has."""
    view, query = existing_view(catalog, statement.name), statement.query
    assert query is not None, "the statement has a query"
    return CreateView(
        view.name,
        query,
        options=view.options,
        starting=view.starting,
        or_replace=True,
        cascade=statement.cascade,
    )


def with_replacement(smaller: Catalog, known: View, statement: CreateView, dependents: Collection[Defined]) -> Catalog:
    """Return the catalog with the new definition of a view. `smaller` has neither the view nor its dependents.

    With the same STARTING AT, it starts where it started before. Raises a `PlanningError`.
    """
    try:
        catalog = defined(smaller, replace(statement, name=known.name))
    except UnknownName as unknown:
        named = {name.lower() for name in named_relations(statement.query)}
        loop = [view.name for view in dependents if isinstance(view, View) and view.name.lower() in named]
        if not loop:
            raise
        raise DefinitionConflict(
            f"view `{known.name}` would read itself" + (f" through `{loop[0]}`" if loop[0] != known.name else ""),
            detail=f"{known.name}: {statement.query.strip()}",
            hint="a view reads only views that do not read it",
        ) from unknown
    same_start = statement.starting == known.starting
    return catalog.with_reading(known.name, known.reading) if same_start else catalog


def restored(catalog: Catalog, definition: Defined) -> Catalog:
    """Return the catalog with a dependent of a replaced view, bound to the new columns. Raises a `PlanningError`."""
    catalog = defined(catalog, as_statement(definition))
    return catalog.with_reading(definition.name, definition.reading) if isinstance(definition, View) else catalog


def follow(definition: Defined, changes: Sequence[ColumnChange]) -> Defined:
    """Return a dependent of an altered source; an index follows the columns that are renamed."""
    if not isinstance(definition, Index):
        return definition
    names = new_names(changes, definition.columns)
    return replace(definition, columns=tuple(names.get(name, name) for name in definition.columns))


def refuse_other_columns(
    before: Catalog, after: Catalog, edited: Collection[Key], cascaded: Collection[Key], *, altered: Sequence[str]
) -> None:
    """Raise `DefinitionConflict` if a view gets other columns, and a sink or a view that was not edited would break.

    `edited` are the definitions that the user gave, `cascaded` those that CASCADE allows to change, and `altered` are
    the sources that the user changed.
    """
    what = "a replaced view" if not altered else f"`{altered[0]}`, which is altered"
    allowing = "CREATE OR REPLACE VIEW … CASCADE AS …" if not altered else "CASCADE at the end of ALTER"
    for view in after.views:
        known = before.find(view.name)
        change = None if not isinstance(known, View) else _change(known.schema, view.schema)
        if change is None:
            continue
        sinks = [sink.name for sink in after.sinks if sink.view == view.name and sink in before.sinks]
        if sinks:
            raise DefinitionConflict(
                f"sink `{sinks[0]}` reads `{view.name}`, whose columns would change",
                detail=change,
                hint=f"keep the columns; or DROP SINK {sinks[0]} in the same text, and create one for the new columns",
            )
        if key_of(view) not in edited and key_of(view) not in cascaded:
            raise DefinitionConflict(
                f"view `{view.name}` reads {what}, and its columns would change",
                detail=f"{change}; {view.name}: {view.query}",
                hint=f"{allowing} allows that; or replace it in the same text",
            )


def _change(old: pa.Schema, new: pa.Schema) -> str | None:
    """Return how columns differ as text; None if they do not."""
    before, after = (", ".join(f"{field.name} {spark_name(field.type)}" for field in schema) for schema in (old, new))
    return None if before == after else f"before: {before}; now: {after}"


def with_new_name(catalog: Catalog, statement: RenameView) -> tuple[View, Catalog]:
    """Return a view, and the catalog in which it has its new name. Its indexes and sinks follow.

    Raises `DefinitionConflict` if the name is taken, or if a view reads it: the text of a view names what it reads.
    """
    view, name = existing_view(catalog, statement.name), statement.new_name
    check_name(name)
    taken = catalog.find(name)
    if taken is not None and taken is not view:
        raise DefinitionConflict(
            f"`{taken.name}` is already defined",
            detail=f"ALTER VIEW {view.name} RENAME TO {name}",
            hint="choose another name, or DROP it first",
        )
    readers = [other for other in with_dependents(catalog, view) if isinstance(other, View) and other is not view]
    if readers:
        raise DefinitionConflict(
            f"`{view.name}` cannot be renamed: view `{readers[0].name}` reads it",
            detail=f"{readers[0].name}: {readers[0].query}",
            hint=f"CREATE VIEW {name} AS SELECT * FROM {view.name} gives its rows a second name",
        )
    return view, renamed_catalog(catalog, {view.name: name})

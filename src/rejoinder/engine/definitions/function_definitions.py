"""Apply CREATE FUNCTION and DROP FUNCTION to a catalog."""

from __future__ import annotations

from rejoinder.engine.definitions.dependents import key_of, with_dependents, without
from rejoinder.errors import DefinitionConflict, UnknownName, near_misses
from rejoinder.ir.allowed_functions import refuse_others
from rejoinder.ir.catalog import Catalog
from rejoinder.sql.statements.function_statements import CreateFunction
from rejoinder.sql.statements.query_text import calls_function
from rejoinder.sql.statements.statement_parser import Drop


def with_function(catalog: Catalog, statement: CreateFunction) -> Catalog:
    """Return the catalog with a function. Raises `Unsupported` if this process does not allow it."""
    if statement.if_not_exists and catalog.function(statement.name) is not None:
        return catalog
    refuse_others([statement.function.reference])
    return catalog.with_function(statement.function)


def without_function(catalog: Catalog, statement: Drop) -> Catalog:
    """Return the catalog without a function; with CASCADE, without the views that call it, too."""
    function = catalog.function(statement.name)
    if function is None:
        if statement.if_exists:
            return catalog
        known = [other.name for other in catalog.functions]
        raise UnknownName(
            f"there is no function `{statement.name}`",
            detail=f"declared: {', '.join(known) or 'none'}",
            hint=near_misses(statement.name, known) or "SHOW FUNCTIONS lists them",
        )
    if statement.cascade:
        return without(catalog, map(key_of, with_dependents(catalog, function)))
    for view in catalog.views:
        if calls_function(view.query, function):
            raise DefinitionConflict(
                f"function `{function.name}` is called by view `{view.name}`",
                detail=f"{view.name}: {view.query}",
                hint=f"DROP VIEW {view.name} first, or DROP FUNCTION {function.name} CASCADE",
            )
    return without(catalog, [key_of(function)])

"""Bind the text of a query, or of a view with its column list: the tree, the EMIT clause, subqueries unnested."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp

from rejoinder.ir.catalog import Catalog, View
from rejoinder.ir.logical import Emission, Query
from rejoinder.plan.unnest.unnesting import unnest
from rejoinder.sql.bind.binder import Binder
from rejoinder.sql.bind.column_lists import with_column_names, with_item_names
from rejoinder.sql.bind.emit_clause import (
    Clause,
    groups_by_window,
    interval_microseconds,
    split_emission,
    take_emit_time,
    with_emit_time,
)
from rejoinder.sql.bind.query_parser import parse_query
from rejoinder.sql.parse.text_caps import with_stack


def bind(
    text: str, catalog: Catalog, kept: Collection[str] = (), *, names: Sequence[str] = (), relation: str = ""
) -> Query:
    """Bind a query. Views in `kept` are scanned; other views are inlined.

    `names` is the column list of the `relation` that the query defines. Raises a `PlanningError` that quotes the name
    and shows its place in the text.
    """
    texts = [text, *(view.query for view in catalog.views)]
    return with_stack(texts, _bound, text, catalog, kept, names, relation)


def _bound(text: str, catalog: Catalog, kept: Collection[str], names: Sequence[str], relation: str) -> Query:
    binder = Binder(catalog, frozenset(kept))
    _, clause = split_emission(text)
    node = with_item_names(parse_query(text, catalog.functions), names)
    query = with_column_names(_with_emission(binder, node, clause), names, relation)
    return replace(query, root=unnest(query.root, binder.numbers)) if binder.has_subqueries else query


def bind_view(view: View, catalog: Catalog, kept: Collection[str] = ()) -> Query:
    """Bind the query of a view, with its column list. Raises a `PlanningError`."""
    return bind(view.query, catalog, kept, names=view.names, relation=view.name)


def _with_emission(binder: Binder, node: exp.Query, clause: Clause | None) -> Query:
    binder.is_final = clause is not None and clause.policy == "final"
    if clause is None or clause.policy == "changes":
        return binder.query(node, {})
    if clause.policy == "every":
        return replace(binder.query(node, {}), emission=Emission("every", interval_microseconds(clause)))
    if clause.policy == "final" and not groups_by_window(node):
        return replace(binder.query(node, {}), emission=Emission("final"))
    return take_emit_time(binder.query(with_emit_time(node, clause), {}), clause)

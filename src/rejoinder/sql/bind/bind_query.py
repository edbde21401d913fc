"""Bind the text of a query, or of a view with its column list: the tree, the EMIT clause, subqueries unnested.

A flow is planned again with every definition and with new statistics. A text over the same relations, as objects, is
not bound again: CREATE VIEW binds it, and planning takes the result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from rejoinder.ir.catalog import Catalog, Index, Relation, View
from rejoinder.ir.logical import Emission, Query
from rejoinder.ir.user_functions import UserFunction
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
from rejoinder.sql.types.flow_zone import bound_in


def bind(
    text: str, catalog: Catalog, kept: Collection[str] = (), *, names: Sequence[str] = (), relation: str = ""
) -> Query:
    """Bind a query. Views in `kept` are scanned; other views are inlined.

    `names` is the column list of the `relation` that the query defines. Raises a `PlanningError` that quotes the name
    and shows its place in the text.
    """
    texts = [text, *(view.query for view in catalog.views)]
    relations = _Relations(catalog.relations)
    return with_stack(
        texts,
        _bound,
        text,
        relations,
        catalog.indexes,
        catalog.functions,
        catalog.time_zone,
        frozenset(kept),
        tuple(names),
        relation,
    )


class _Relations(tuple[Relation, ...]):
    """Relations that are equal only to the same objects, so that comparing them costs nothing."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Relations) and tuple(map(id, self)) == tuple(map(id, other))


@lru_cache(maxsize=512)
def _bound(
    text: str,
    relations: _Relations,
    indexes: tuple[Index, ...],
    functions: tuple[UserFunction, ...],
    time_zone: str,
    kept: frozenset[str],
    names: tuple[str, ...],
    relation: str,
) -> Query:
    binder = Binder(Catalog(tuple(relations), indexes, functions=functions, time_zone=time_zone), kept)
    _, clause = split_emission(text)
    node = with_item_names(parse_query(text, functions), names)
    with bound_in(time_zone):
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

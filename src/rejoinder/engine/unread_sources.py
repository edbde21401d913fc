"""Queries on sources that no view reads: a temporary flow answers them and is removed afterwards.

The temporary flow reads these sources from their start. All other relations of the query are copied into it as of the
last committed epoch. The state of the original flow does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.engine.engine import Engine
from rejoinder.engine.queries.adhoc_query import run_query
from rejoinder.engine.statements import Answer, Streamed, execute
from rejoinder.errors import Unsupported
from rejoinder.ir.catalog import Catalog, Kind, Source, View
from rejoinder.ir.identities import owner_of
from rejoinder.plan.physical.dataflow import SourceScan
from rejoinder.sql.statements.query_text import named_relations
from rejoinder.sql.statements.statement_parser import Select

_READER = "reader of "
_SIDE_EFFECTS = ("cleansource", "sourcearchivedir")
"""Options that move or delete files after they are read. A query must not do that."""


@dataclass(frozen=True)
class Reading:
    """The temporary flow of a query: its definitions, and the rows that are copied into it."""

    catalog: Catalog
    copied: dict[str, pa.Table]


def unread_sources(engine: Engine, query: str) -> list[Source]:
    """Return the sources that a query names and no view reads. In-memory sources are always read."""
    scans = engine.dataflow.scans.values()
    read = {scan.source.name for scan in scans if isinstance(scan, SourceScan)}
    named = {owner_of(name).lower() for name in named_relations(query)}
    return [
        source
        for source in engine.version.catalog.sources
        if source.name.lower() in named and source.name not in read and not source_side(source).keeps_changes
    ]


def reading_of(engine: Engine, statement: Select) -> Reading:
    """Return the temporary flow for a query on unread sources. Raises if another relation cannot be read."""
    query = statement.query
    unread = unread_sources(engine, query)
    if statement.past:
        raise Unsupported(
            f"`{unread[0].name}` cannot be joined with past epochs: no view reads it",
            detail=f"`{statement.past[0].relation}` is read as of {statement.past[0].at}",
            hint=f"CREATE VIEW on `{unread[0].name}` first",
        )
    names = {source.name for source in unread}
    relations: list[Source | View] = [_without_side_effects(source) for source in unread]
    copied: dict[str, pa.Table] = {}
    for name in named_relations(query):
        relation = engine.version.catalog.find(name)
        if relation is None or relation.name in names | copied.keys():
            continue  # a name of WITH, or an unknown name, for which the temporary flow raises an error
        copied[relation.name], _, _ = run_query(engine, f"SELECT * FROM `{relation.name}`", statement.starting)
        kind: Kind = "stream" if isinstance(relation, Source) and relation.kind == "stream" else "changelog"
        relations.append(Source(relation.name, kind, relation.schema))
    relations += [View(f"{_READER}{source.name}", f"SELECT * FROM `{source.name}`", source.schema) for source in unread]
    return Reading(replace(engine.version.catalog, relations=tuple(relations), indexes=(), sinks=()), copied)


def answer_here(engine: Engine, statement: Select) -> Answer:
    """Answer a query from a temporary engine. Reads all rows now, since the engine is removed afterwards."""
    answer = execute(engine, statement)
    if isinstance(answer, Streamed):
        changes = answer.read()
        return replace(answer, read=lambda: changes)
    return answer


def _without_side_effects(source: Source) -> Source:
    """Return the source without options that change its files."""
    options = {option: value for option, value in source.options.items() if option not in _SIDE_EFFECTS}
    return replace(source, options=options)

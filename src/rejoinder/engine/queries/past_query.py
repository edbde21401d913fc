"""Queries that read relations at past epochs: SELECT … FROM v VERSION AS OF 12.

The rows of each relation at its epoch are the input of a temporary engine in memory, which runs the query with the
operators of a flow. Relations may be at different epochs; those without AS OF are at the last committed one. Cost: that
of reading these relations at their epochs in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from rejoinder.engine.engine import Engine
from rejoinder.engine.queries.adhoc_query import NAME, run_query, split_order
from rejoinder.engine.queries.change_replay import as_changelog, changelog_name, has_history, named, run_histories
from rejoinder.errors import NotCommitted, Unsupported
from rejoinder.ir.catalog import Source, View
from rejoinder.kernels.arrow.columns import HASH, without
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.parse.clauses import refuse_duplicate_names, refuse_reserved
from rejoinder.sql.statements.past_versions import PastRelation
from rejoinder.state.reading.changelog_reader import epoch_of, expanded, read_table
from rejoinder.state.reading.renderings import settled


def run_past_query(engine: Engine, query: str, past: Sequence[PastRelation]) -> tuple[pa.Table, bool]:
    """Return the rows of a query, and whether they are ordered. `past` names relations at epochs. Writes nothing.

    Raises `NotCommitted` for an epoch outside the history, and `Unsupported` for a source without history.
    """
    with engine.lock:  # a commit may collect the files of the version before it
        version = engine.version
        if version.manifest is None:
            raise NotCommitted("nothing is committed yet", hint="run the flow first")
        inputs: dict[str, pa.Table] = {}
        sources: list[Source] = []
        for entry in past:
            relation = readable(version.catalog, entry.relation)
            epoch = epoch_of(engine.store, version.manifest, entry.at)
            inputs[entry.name] = rows_at(engine, relation, epoch)
            sources.append(replace(as_changelog(relation), name=entry.name))
        for name, relation in named(engine, query).items():
            inputs[name] = rows_at(engine, relation, engine.epoch)
            sources.append(as_changelog(relation))
    catalog = replace(version.catalog, relations=tuple(sources), indexes=(), sinks=())
    ordered = split_order(catalog, query)
    schema = bind(ordered.query, catalog).schema
    refuse_duplicate_names(schema.names, "in the result")
    refuse_reserved(schema.names, "in the result")
    view = View(NAME, ordered.query, schema)
    histories = {name: {0: rows} for name, rows in inputs.items() if rows.num_rows}
    changes = run_histories(catalog.with_relation(view), histories, view, {0: version.timeline.latest}, [0])
    return ordered.apply(settled(changes)), bool(ordered.ordering.keys)


def rows_at(engine: Engine, relation: Source | View, epoch: int) -> pa.Table:
    """Return the rows of a relation at an epoch. Raises `NotCommitted`, or `Unsupported` if no past rows are kept."""
    manifest = engine.version.manifest
    assert manifest is not None, "an epoch is committed"
    name = changelog_name(relation)
    if has_history(relation) and name in engine.dataflow.views:
        rows = read_table(engine.store, manifest, name, relation.schema, as_of=epoch)
        return without(expanded(rows), [HASH]).select(relation.schema.names)
    if epoch > manifest.epoch:
        last = f"the last one is {manifest.epoch}"
        raise NotCommitted(f"epoch {epoch} is not committed yet", detail=last, hint="read an earlier epoch")
    if epoch < manifest.epoch:
        raise Unsupported(
            f"`{relation.name}` cannot be read as of epoch {epoch}",
            detail=f"past rows of a source USING {relation.format} are not kept"
            if isinstance(relation, Source)
            else "it has no changelog",
            hint=f"CREATE VIEW … AS SELECT * FROM {relation.name} keeps its changes from now on; views that read it "
            "have them already",
        )
    return run_query(engine, f"SELECT * FROM `{relation.name}`").table

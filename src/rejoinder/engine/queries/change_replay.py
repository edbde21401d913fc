"""The changes of an ad-hoc query: replay the changes of its inputs, epoch by epoch, in a temporary engine.

The history of an input depends on its kind:
- a view has a changelog over the epochs of the history; older epochs are one change;
- an in-memory source has a changelog too (`Source.changes`), and a side output is one;
- any other source has only its current content. It is inserted at the first epoch of the history, and the answer has a
  note about it.

Nothing is written to the store of the flow. Cost: that of the replayed epochs. For a frequent query, a view is cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.engine.engine import Engine
from rejoinder.engine.queries.adhoc_query import NAME, run_query
from rejoinder.errors import NotCommitted, UnknownName, Unsupported
from rejoinder.host.entropy import token
from rejoinder.ir.catalog import INTERNAL, Catalog, Kind, Source, View
from rejoinder.ir.identities import SideOutput
from rejoinder.ir.splits import RowsSplit, split_batch
from rejoinder.kernels.arrow.columns import DIFF, EPOCH, numbers, replaced, take, without
from rejoinder.kernels.arrow.scatter import encode
from rejoinder.plan.operations.side_outputs import find_side_output, takes_every_row
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.bind.emit_clause import split_emission
from rejoinder.sql.parse.clauses import refuse_duplicate_names, refuse_reserved
from rejoinder.sql.statements.query_text import named_relations, whole_relation
from rejoinder.state.executor import LocalExecutor
from rejoinder.state.reading.changelog_reader import from_start, history_note, history_start, read_changes, timeline_of
from rejoinder.state.reading.renderings import Changes, changes_of
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.memory_objects import drop_memory
from rejoinder.store.objects.object_store import open_store

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Replayed:
    """The changes of a query. `note`: which part of the history is missing."""

    changes: Changes
    note: str | None = None


def as_sources(engine: Engine, query: str) -> Catalog:
    """Return the relations that a query reads, including views, as sources of changes."""
    relations = tuple(as_changelog(relation) for relation in named(engine, query).values())
    return replace(engine.version.catalog, relations=relations, indexes=(), sinks=())


def named(engine: Engine, query: str) -> dict[str, Source | View]:
    """Return the relations that a query names."""
    names = named_relations(query)
    catalog = engine.version.catalog
    found = [catalog.find(name) or find_side_output(catalog, name) for name in names]
    relations = {relation.name: relation for relation in found if relation is not None}
    for name, relation in relations.items():
        side = relation.relation
        if isinstance(side, SideOutput) and side.output == "late" and name not in engine.dataflow.views:
            raise takes_every_row(side.owner)
    return relations


def replay(engine: Engine, query: str, added: Sequence[str] = (), starting: str | None = None) -> Replayed:
    """Return the changes of a query over the epochs of the history. Raises a `PlanningError`, or `NotCommitted`.

    `added` are the columns that the rendering adds. Incomplete sources begin at `starting`.
    """
    with engine.lock:
        manifest = engine.version.manifest
        if manifest is None:
            raise NotCommitted("nothing is committed yet", hint="run the flow first")
        relations = named(engine, query)
        try:
            schema = bind(query, as_sources(engine, query)).schema
        except UnknownName:
            bind(query, engine.version.catalog)  # raises the error with near misses among all names
            raise
        refuse_duplicate_names(schema.names, "in the result")
        refuse_reserved(schema.names, "in the result", added)
        _, emission = split_emission(query)
        if emission is not None and emission.policy in ("watermark", "final"):
            raise Unsupported(
                f"{'EMIT FINAL' if emission.policy == 'final' else 'EMIT WHEN WATERMARK'} is not supported here",
                detail="an ad-hoc query would need the watermarks of earlier epochs, which are not kept",
                hint="CREATE VIEW v AS … EMIT …, and SELECT STREAM * FROM v",
            )
        cut = [relation.name for relation in relations.values() if _start(manifest, relation) is not None]
        start = manifest.extra["since"] if cut else None
        read = {name: _history(engine, relation, starting) for name, relation in relations.items()}
        histories = {name: from_start(history, start) for name, (history, _) in read.items()}
        times = timeline_of(manifest).times(engine.store)
    notes = [_note([relation.name for relation in relations.values() if not has_history(relation)])]
    notes += [incomplete for _, incomplete in read.values()]
    notes += [] if start is None else [history_note(cut, start)]
    note = "; ".join(text for text in notes if text is not None) or None
    whole = whole_relation(query)
    if whole is not None and len(histories) == 1:
        zone = engine.version.catalog.time_zone
        return Replayed(Changes(next(iter(histories.values())), schema, times, start, zone), note)
    by_epoch = {name: _by_epoch(history) for name, history in histories.items()}
    epochs = {epoch for history in by_epoch.values() for epoch in history}
    if emission is not None:  # an epoch without input may emit pending changes
        epochs |= {epoch for epoch in times if start is None or epoch >= start}
    view = View(NAME, query, schema)
    changes = run_histories(as_sources(engine, query).with_relation(view), by_epoch, view, times, sorted(epochs))
    return Replayed(replace(changes, table=from_start(changes.table, start), start=start), note)


def run_histories(
    catalog: Catalog,
    histories: Mapping[str, Mapping[int, pa.Table]],
    view: View,
    times: Mapping[int, int],
    epochs: list[int],
) -> Changes:
    """Replay histories into a temporary flow, and return the changes of its view."""
    place = f"replay-{token(16)}"
    try:
        scratch = Engine(open_store(f"memory://{place}"), LocalExecutor(), buckets=1, history=len(epochs) + 1)
        scratch.define(catalog)
        for number, epoch in enumerate(epochs):
            splits = [RowsSplit(name, encode(rows[epoch])) for name, rows in histories.items() if epoch in rows]
            scratch.run_epoch(number, [split_batch(splits)], time_ms=times.get(epoch, 0))
        assert scratch.version.manifest is not None
        changes = changes_of(scratch.store, scratch.version.manifest, view.name, view.schema)
        # Epoch −1, for changes before the first epoch, is the last element and stays −1.
        original = np.array([*epochs, -1], np.int64)[numbers(changes.table, EPOCH)]
        return Changes(replaced(changes.table, EPOCH, original), view.schema, times, time_zone=catalog.time_zone)
    finally:
        drop_memory(place)


def as_changelog(relation: Source | View) -> Source:
    """Return a relation as a source of its changes, with the event-time columns that versions need."""
    watermarks = relation.watermarks if isinstance(relation, Source) else {}
    kind: Kind = "stream" if isinstance(relation, Source) and relation.kind == "stream" else "changelog"
    return Source(relation.name, kind, relation.schema, format=INTERNAL, watermarks=watermarks)


def _start(manifest: Manifest, relation: Source | View) -> int | None:
    """Return the epoch at which the history of a relation starts; None if it is complete."""
    return history_start(manifest, changelog_name(relation)) if has_history(relation) else None


def changelog_name(relation: Source | View) -> str:
    """Return the name under which the changes of a relation are kept, if they are."""
    is_kept = isinstance(relation, Source) and source_side(relation).keeps_changes
    return str(relation.changes) if isinstance(relation, Source) and is_kept else relation.name


def has_history(relation: Source | View) -> bool:
    """Return whether the changes of a relation are kept."""
    return isinstance(relation, View) or relation.is_internal or source_side(relation).keeps_changes


def _history(engine: Engine, relation: Source | View, starting: str | None) -> tuple[pa.Table, str | None]:
    """Return the changes of a relation, with `__epoch` and `__diff`, and a note about missing rows."""
    assert engine.version.manifest is not None
    if has_history(relation):
        name = changelog_name(relation)
        if name not in engine.dataflow.views:  # a side output of a source that no view reads
            return replaced(replaced(relation.schema.empty_table(), EPOCH, _NONE), DIFF, _NONE), None
        changes = read_changes(
            engine.store, engine.version.manifest, name, relation.schema, after=-2, until=engine.epoch
        )
        return changes, None
    content, _, note = run_query(engine, f"SELECT * FROM `{relation.name}`", starting)
    first = np.full(content.num_rows, max(0, engine.version.manifest.extra["since"]), np.int64)
    return replaced(replaced(content, EPOCH, first), DIFF, np.ones(content.num_rows, np.int64)), note


def _by_epoch(history: pa.Table) -> dict[int, pa.Table]:
    epochs = numbers(history, EPOCH)
    order = np.argsort(epochs, kind="stable")
    rows = take(without(history, [EPOCH]), order)
    distinct, starts = np.unique(epochs[order], return_index=True)
    counts = np.diff([*starts, len(epochs)])
    return {int(epoch): rows.slice(start, count) for epoch, start, count in zip(distinct, starts, counts, strict=True)}


def _note(names: list[str]) -> str | None:
    if not names:
        return None
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        f"the changes of {listed} are not kept: {'its' if len(names) == 1 else 'their'} current content counts as "
        "inserted at the start; CREATE VIEW to follow it"
    )

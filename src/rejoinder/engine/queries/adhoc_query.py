"""Ad-hoc queries: hydrate a temporary view from the arrangements and read it once, or read an existing view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rejoinder.engine.engine import Engine
from rejoinder.engine.hydration.fill import Filling, prepare
from rejoinder.engine.hydration.view_starts import planned_from_start, settled, start_note
from rejoinder.errors import InvalidSql, PlanningError, UnknownName, near_misses
from rejoinder.ir.catalog import Catalog, View
from rejoinder.kernels.arrow.columns import DIFF, HASH, contiguous, single_chunk, take, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.sorting import rank_values
from rejoinder.planner import plan
from rejoinder.runtime.bucket_rounds import EpochWork, Setting
from rejoinder.runtime.task import Clock
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.parse.clauses import refuse_duplicate_names, refuse_reserved
from rejoinder.sql.parse.text_caps import with_stack
from rejoinder.sql.statements.query_text import whole_relation
from rejoinder.sql.statements.result_order import Ordering, split_ordering, with_order_columns
from rejoinder.state.completeness import QUERY
from rejoinder.state.executor import LocalExecutor
from rejoinder.state.flow_state import State
from rejoinder.state.reading.changelog_reader import expanded, read_table
from rejoinder.store.objects.scratch_objects import Scratch
from rejoinder.store.runs.run import read_run

NAME = QUERY


@dataclass(frozen=True)
class Ordered:
    """A query without its ORDER BY, and its ordering. `added` are columns that are only used for the order."""

    query: str
    ordering: Ordering
    added: Sequence[str] = ()

    def apply(self, rows: pa.Table) -> pa.Table:
        """Return the rows in their order, up to the LIMIT, without the added columns."""
        return without(_ordered(rows, self.ordering), self.added)


def split_order(catalog: Catalog, text: str) -> Ordered:
    """Split ORDER BY and LIMIT from a query. It may order by expressions, and by columns that it does not select."""
    query, ordering = split_ordering(text)
    if all(isinstance(key, int) for key, _, _ in ordering.keys):
        return Ordered(query, ordering)
    wider, keys, added = with_order_columns(query, ordering, bind(query, catalog).schema.names)
    try:
        bind(wider, catalog)
    except PlanningError:
        if not all(isinstance(key, str | int) for key, _, _ in ordering.keys):
            raise
        return Ordered(query, ordering)  # the ORDER BY is invalid, for which `apply` raises an error
    return Ordered(wider, keys, added)


class Result(NamedTuple):
    """The rows of a query, whether they are ordered, and a note about missing rows."""

    table: pa.Table
    is_ordered: bool
    note: str | None = None


def run_query(engine: Engine, text: str, starting: str | None = None) -> Result:
    """Return the rows of a query as of the last committed epoch. Writes nothing to the store.

    Incomplete sources begin at `starting`. Without it, raises `Incomplete`.
    """
    return with_stack(
        [text, *(view.query for view in engine.version.catalog.views)], _run_query, engine, text, starting
    )


def _run_query(engine: Engine, text: str, starting: str | None) -> Result:
    ordered = split_order(engine.version.catalog, text)
    rows, note = _whole_view(engine, ordered.query), None
    if rows is None:
        rows, note = _filled(engine, ordered.query, starting)
    return Result(ordered.apply(rows), bool(ordered.ordering.keys), note)


def _whole_view(engine: Engine, query: str) -> pa.Table | None:
    """Return the rows of `SELECT * FROM view` from its changelog; None for other queries."""
    name = whole_relation(query)
    with engine.lock:  # a commit may collect the files of the version before it
        views, manifest = engine.dataflow.views, engine.version.manifest
        view = next((view for view in views if name is not None and view.lower() == name.lower()), None)
        return (
            None
            if view is None or manifest is None
            else expanded(read_table(engine.store, manifest, view, views[view]))
        )


def _filled(engine: Engine, query: str, starting: str | None) -> tuple[pa.Table, str | None]:
    """Return the rows of a query, hydrated as a view would be, and a note about missing rows."""
    with engine.lock:  # a commit may collect the files of the version before it
        version, replay = engine.version, engine.replay()

        def planned(catalog: Catalog) -> Filling:
            return prepare(version, replay, plan(catalog, version.state.statistics()), version.times)

        bound = bind(query, version.catalog)
        refuse_duplicate_names(bound.schema.names, "in the result")
        refuse_reserved(bound.schema.names, "in the result")
        view = View(NAME, query, bound.schema, starting=starting)
        catalog = settled(version.catalog.with_relation(view), version.state, version.deliveries)
        catalog, filling = planned_from_start(catalog, version.state, version.epoch, planned)
        store = Scratch(engine.store)
        setting = Setting(filling.dataflow, store, engine.buckets, engine.history, expiry=filling.expiry, hydrates=True)
        work = EpochWork(setting, version.epoch, filling.before, Clock(version.timeline.latest * 1000))
        reports = LocalExecutor().run_listed(work, [*filling.splits, *replay.records(filling.topics)])
        result = filling.into(version.state, reports)
        temporary = next(view for view in catalog.views if view.name == NAME)
    return _rows(store, result, bound.schema), start_note(temporary)


def _rows(store: Scratch, state: State, schema: pa.Schema) -> pa.Table:
    tables = [without(read_run(store, ref), [HASH]) for part in state.changelogs.get(NAME, ()) for ref in part.refs]
    if not tables:
        return schema.empty_table()
    rows = expanded(consolidate(contiguous(tables)))
    return without(rows, [DIFF]).select(schema.names)


def _ordered(table: pa.Table, ordering: Ordering) -> pa.Table:
    ranks = []
    for key, direction, placement in reversed(ordering.keys):
        assert isinstance(key, str | int), "an expression has become a column"
        column = single_chunk(table.column(_position(table, key)))
        rank = rank_values(column) * (1 if direction == "ascending" else -1)
        end = len(rank) + 1 if placement == "at_end" else -len(rank) - 1
        ranks.append(np.where(np.asarray(column.is_null()), end, rank))
    if ranks:
        table = take(table, np.lexsort(ranks))
    return table.slice(ordering.offset, ordering.limit)


def _position(table: pa.Table, key: str | int) -> int:
    names = table.column_names
    if isinstance(key, int):
        if not 0 <= key < len(names):
            raise InvalidSql(
                f"ORDER BY {key + 1} of {len(names)} column(s)",
                detail=f"columns of the result: {', '.join(names)}",
                hint="positions start at 1",
            )
        return key
    positions = [position for position, name in enumerate(names) if name.lower() == key.lower()]
    if len(positions) != 1:
        raise UnknownName(
            f"there is no column `{key}` to order by",
            detail=f"columns of the result: {', '.join(names)}",
            hint=near_misses(key, names) or "ORDER BY takes columns of the result",
        )
    return positions[0]

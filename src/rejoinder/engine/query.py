"""Ad-hoc queries: a view that is filled from the arrangements, read once and never committed."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.engine.engine import Engine
from rejoinder.engine.executor import LocalExecutor
from rejoinder.engine.planner import plan, plan_hydration
from rejoinder.engine.reading import expanded
from rejoinder.engine.state import State
from rejoinder.kernels.columns import DIFF, HASH, contiguous, without
from rejoinder.kernels.consolidate import consolidate
from rejoinder.operators.stage import EpochWork, Setting
from rejoinder.plan.catalog import Catalog, View
from rejoinder.sql.binder import bind
from rejoinder.sql.ordering import Ordering, split_ordering
from rejoinder.store.run import read_run
from rejoinder.store.scratch import Scratch

NAME = "ad-hoc query"


def run_query(engine: Engine, text: str) -> pa.Table:
    """The rows of a query on the last committed epoch. Writes nothing to the store."""
    query, ordering = split_ordering(text)
    with engine.lock:
        bound = bind(query, engine.catalog)
        catalog = Catalog((*engine.catalog.relations, View(NAME, query, bound.schema)), engine.catalog.indexes)
        new = plan(catalog, engine.state.statistics())
        dataflow = plan_hydration(new.program, engine.filled(), set(new.dataflow.views) - {NAME})
        store = Scratch(engine.store)
        setting = Setting(dataflow, store, engine.buckets, engine.history)
        work = EpochWork(setting, engine.epoch, engine.state.parts)
        reports = LocalExecutor().run_listed(work, engine.state.splits(dataflow))
        result = engine.state.with_reports(reports)
    return _ordered(_rows(store, result, bound.schema), ordering)


def _rows(store: Scratch, state: State, schema: pa.Schema) -> pa.Table:
    tables = [without(read_run(store, ref), [HASH]) for part in state.changelogs.get(NAME, ()) for ref in part.refs]
    if not tables:
        return schema.empty_table()
    rows = expanded(consolidate(contiguous(tables)))
    return without(rows, [DIFF]).select(schema.names)


def _ordered(table: pa.Table, ordering: Ordering) -> pa.Table:
    for key, direction, placement in reversed(ordering.keys):
        name = table.column_names[key] if isinstance(key, int) else key
        order = pa.compute.sort_indices(table, sort_keys=[(name, direction)], null_placement=placement)
        table = table.take(order)
    return table if ordering.limit is None else table.slice(0, ordering.limit)

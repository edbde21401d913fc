"""Evaluate a logical tree on the rows of its inputs at one epoch, with the operators of a flow, in memory.

The tree is planned as a view is, and run as one epoch over a temporary store. Nothing is written to the flow's store.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from rejoinder.engine.engine import Engine
from rejoinder.engine.hydration.fill import prepare
from rejoinder.engine.hydration.source_replay import SourceReplay
from rejoinder.engine.queries.change_replay import as_changelog
from rejoinder.engine.queries.past_query import rows_at
from rejoinder.engine.version import Version
from rejoinder.ir.catalog import INTERNAL, Catalog, Source, View
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.operators import NULL_SAFE, compared
from rejoinder.ir.identities import SourceRows
from rejoinder.ir.logical import Join, Node, Predicate, Query, Scan
from rejoinder.ir.splits import RowsSplit, split_batch
from rejoinder.kernels.arrow.columns import HASH, without
from rejoinder.kernels.arrow.scatter import encode
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.plan.physical.dataflow import Dataflow
from rejoinder.plan.planning import Plan, Planning
from rejoinder.plan.unnest.tree_columns import columns_of, inputs_of
from rejoinder.runtime.bucket_rounds import EpochWork, Setting
from rejoinder.runtime.task import Clock
from rejoinder.sql.bind.bind_query import bind_view
from rejoinder.sql.statements.query_text import named_relations
from rejoinder.state.epoch_rounds import Times, run_rounds
from rejoinder.state.executor import LocalExecutor
from rejoinder.state.flow_state import State
from rejoinder.state.reading.changelog_reader import WHOLE, expanded
from rejoinder.state.watermarks import Signals, Watermarks
from rejoinder.store.objects.memory_objects import drop_memory
from rejoinder.store.objects.object_store import ObjectStore, open_store
from rejoinder.store.runs.net_rows import net_rows
from rejoinder.store.runs.run import drop_open_runs

WANTED = "wanted rows"
_VIEW = "rows"
_places = itertools.count()


@dataclass
class TreeRows:
    """The rows of the relations of a flow at an epoch, each read once."""

    engine: Engine
    epoch: int
    _tables: dict[str, pa.Table] = field(default_factory=dict)

    def relation(self, name: str) -> Source | View:
        """Return a source, a view or a side output. Raises `UnknownName`."""
        return readable(self.engine.version.catalog, name)

    def table(self, name: str) -> pa.Table:
        """Return the rows of a relation. Raises `Unsupported` if its past rows are not kept."""
        relation = self.relation(name)
        if relation.name not in self._tables:
            self._tables[relation.name] = rows_at(self.engine, relation, self.epoch)
        return self._tables[relation.name]

    def bound(self, view: View) -> Query:
        """Return the query of a view as a tree over the relations that it names: views in it are scanned."""
        catalog = self.engine.version.catalog
        named = [self.relation(name) for name in named_relations(view.query) if catalog.find(name) or "." in name]
        sources = {relation.name: as_changelog(relation) for relation in named}
        query = bind_view(view, replace(catalog, relations=tuple(sources.values()), indexes=(), sinks=()))
        return replace(query, emission=None)

    def rows(self, node: Node, columns: Sequence[str], wanted: pa.Table | None = None) -> pa.Table:
        """Return columns of a tree by their ids; with `wanted`, of rows that are equal to one of these in its columns.

        A `wanted` table without columns restricts nothing.
        """
        tables = {}
        if wanted is not None and wanted.column_names:
            node, tables[WANTED] = restricted(node, wanted)
        for scan in scans_of(node):
            if str(scan.relation) != WANTED:
                tables[str(scan.relation)] = self.table(str(scan.relation))
        types = columns_of(node)
        outputs = tuple((f"c{number}", column(i, types[i])) for number, i in enumerate(columns))
        sources = {name: self._source(name, rows) for name, rows in tables.items()}
        now = self.engine.version.timeline.times(self.engine.store).get(self.epoch, 0)
        result = _evaluated(Query(node, outputs), tables, sources, self.engine.replay(), now)
        return result.rename_columns(list(columns))

    def _source(self, name: str, rows: pa.Table) -> Source:
        if name == WANTED:
            return Source(WANTED, "changelog", rows.schema, format=INTERNAL)
        return replace(as_changelog(self.relation(name)), watermarks={})


def scans_of(node: Node) -> list[Scan]:
    """Return the scans of a tree."""
    return [node] if isinstance(node, Scan) else [scan for part in inputs_of(node) for scan in scans_of(part)]


def restricted(node: Node, wanted: pa.Table) -> tuple[Node, pa.Table]:
    """Return a tree with only the wanted rows, and the rows of the relation `WANTED`. NULL equals NULL."""
    types = columns_of(node)
    names = [f"w{number}" for number in range(wanted.num_columns)]
    ids = [f"{WANTED}.{name}" for name in names]
    rows = wanted.rename_columns(names)
    predicates = []
    for i, own in zip(wanted.column_names, ids, strict=True):
        sides = column(i, types[i]), column(own, types[i])
        equal = Expression(compared(sides[0].node, NULL_SAFE, sides[1].node))
        predicates.append(Predicate(equal, equality=sides, null_safe=True))
    scan = Scan(SourceRows(WANTED), tuple(zip(ids, names, strict=True)), rows.schema)
    return Join(node, scan, tuple(predicates), "semi"), rows


def _evaluated(
    query: Query, tables: Mapping[str, pa.Table], sources: Mapping[str, Source], replay: SourceReplay, now: int
) -> pa.Table:
    """Return the rows of a query over tables. `now` is the processing time in milliseconds."""
    planning = Planning(sources)
    planning.add(_VIEW, query)
    plan = planning.plan(Catalog(tuple(sources.values())), {})
    place = f"causes-{next(_places)}"
    store = open_store(f"memory://{place}")
    try:
        outcome = run_rounds(
            plan,
            LocalExecutor(),
            partial(_work, store),
            _initial(store, plan, replay),
            Watermarks(),
            [split_batch([RowsSplit(name, encode(rows)) for name, rows in tables.items() if rows.num_rows])],
            Signals({}),
            Times(now, now, now),
        )
        refs = [ref for part in outcome.state.changelogs.get(_VIEW, ()) for ref in part.refs]
        schema = plan.dataflow.views[_VIEW]
        result = expanded(net_rows(store, refs, schema, after=-2, until=0, hashes=WHOLE))
        return without(result, [HASH]).select(query.schema.names)
    finally:
        drop_open_runs(store)
        drop_memory(place)


def _initial(store: ObjectStore, plan: Plan, replay: SourceReplay) -> State:
    """Return the state before the first row: an aggregate without groups has a row then."""
    names = [arrangement.id for arrangement in plan.dataflow.arrangements]
    new = Version(None, Catalog(), Planning({}).plan(Catalog(), {}), State(1))
    filling = prepare(new, replay, plan, new.times)
    state = new.state
    if filling.splits:
        setting = Setting(filling.dataflow, store, 1, 1, expiry=filling.expiry, hydrates=True)
        reports = LocalExecutor().run_listed(EpochWork(setting, -1, filling.before, Clock(0)), filling.splits)
        state = filling.into(state, reports)
    return state.restricted_to(names, plan.dataflow.views)


def _work(store: ObjectStore, dataflow: Dataflow, state: State, clock: Clock) -> EpochWork:
    return EpochWork(Setting(dataflow, store, 1, 1), 0, state.parts, clock)

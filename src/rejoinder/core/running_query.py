"""A query that runs in this process: the planner's rounds over a store in memory, an epoch a call, without commits."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.identities import source_of
from rejoinder.ir.logical import Query
from rejoinder.ir.splits import RowsSplit, split_batch
from rejoinder.kernels.arrow.columns import DIFF, HASH, contiguous, numbers, take, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.kernels.arrow.scatter import encode
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.plan.physical.dataflow import Dataflow
from rejoinder.plan.physical.steps import Aggregate, Arrange, Hold
from rejoinder.plan.planning import Planning
from rejoinder.runtime.bucket_rounds import EpochWork, Setting, run_steps
from rejoinder.runtime.steps.arrange import insert_runs
from rejoinder.runtime.task import Clock, partition_hashes
from rejoinder.state.epoch_rounds import Times, run_rounds
from rejoinder.state.executor import LocalExecutor
from rejoinder.state.flow_state import State
from rejoinder.state.gate_times import clock_of
from rejoinder.state.reading.changelog_reader import WHOLE, expanded, net_rows
from rejoinder.state.watermarks import Signals, Watermarks
from rejoinder.store.objects.memory_objects import drop_memory
from rejoinder.store.objects.object_store import ObjectStore, open_store
from rejoinder.store.runs.run import close_runs, drop_open_runs, read_run
from rejoinder.watermarks.formula import value_of

VIEW = "result"
ARRIVAL = "__arrival"
"""Numbers rows as they come, in sources whose rows are told apart."""

_places = itertools.count()
_NO_TIME = Times(0, 0, 0)
OneStep = TypeVar("OneStep", Aggregate, Hold)


def stream(name: str, schema: pa.Schema, times: Sequence[str]) -> Source:
    """An input whose watermarks are passed. Nothing is kept of it that the query does not need (`incomplete`)."""
    return Source(name, "stream", schema, format="core", watermarks=dict.fromkeys(times), incomplete=True)


class RunningQuery:
    """A query over streams. A call is atomic: if it raises, nothing has changed."""

    def __init__(self, sources: Sequence[Source], query: Query, *, is_capped: bool = False) -> None:
        planning = Planning({source.name: source for source in sources})
        planning.add(VIEW, query, is_capped=is_capped)
        self._plan = planning.plan(Catalog(tuple(sources)), {})
        place = f"core-{next(_places)}"
        self._store = open_store(f"memory://{place}")
        weakref.finalize(self, _drop, self._store, place)
        self._setting = partial(Setting, store=self._store, buckets=1, history=1)
        self._state = self._without_history(State(1))
        self._watermarks = Watermarks()
        self._epoch = -1

    def run(self, rows: Mapping[str, pa.Table], watermarks: Mapping[str, Mapping[str, int]]) -> pa.Table:
        """Take rows and watermarks of sources, by name and column; give the rows that come out."""
        epoch = self._epoch + 1
        splits = [RowsSplit(name, encode(table)) for name, table in rows.items()]
        signals = Signals({name: {0: times} for name, times in watermarks.items() if times})
        done = run_rounds(
            self._plan,
            LocalExecutor(),
            partial(self._work, epoch),
            self._state,
            self._watermarks,
            [split_batch(splits)],
            signals,
            _NO_TIME,
        )
        refs = [ref for part in done.state.changelogs.get(VIEW, ()) for ref in part.refs]
        schema = self._plan.dataflow.views[VIEW]
        out = expanded(net_rows(self._store, refs, schema, after=self._epoch, until=epoch, hashes=WHOLE))
        self._epoch, self._watermarks = epoch, done.watermarks
        self._state = self._without_history(done.state)
        self._collect()
        return out

    def watermark(self, column: str) -> int | None:
        """The watermark of a column of the result: what was received, or the smallest time kept if that is less."""
        formula = self._plan.outputs[VIEW].get(column)
        value = LEAST if formula is None else value_of(formula, self._watermarks.times, LEAST)
        return None if value == LEAST else value

    def content(self, source: str) -> pa.Table:
        """The rows of a source in the arrangements, as they came. Some may have expired."""
        schema = self._plan.program.sources[source].schema
        tables = [schema.empty_table()]
        for arrangement in self._plan.dataflow.arrangements:
            if source_of(arrangement.relation) == source:
                parts = self._state.arrangements[arrangement.id]
                tables += [read_run(self._store, ref).select(schema.names) for part in parts for ref in part.refs]
        table = contiguous(tables)
        _, first = np.unique(numbers(table, ARRIVAL), return_index=True)
        return take(table, first)

    def groups(self) -> tuple[pa.Table, tuple[str, ...]]:
        """The groups of the only aggregate of the query, and the columns that make a group. Some may have expired."""
        step = self._only(Aggregate)
        refs = [ref for part in self._state.arrangements[step.arrangement.id] for ref in part.refs]
        empty = step.arrangement.schema.append(pa.field(HASH, pa.uint64())).empty_table()
        rows = consolidate(contiguous([empty, *(read_run(self._store, ref) for ref in refs)]))
        return without(rows, [HASH, DIFF]), step.keys

    def restore_groups(self, rows: pa.Table) -> None:
        """Hold these groups of the only aggregate; their results are emitted when they are final."""
        step, block = self._only(Aggregate), self._plan.program.views[VIEW]
        (arranged,) = [
            each
            for each in self._plan.dataflow.steps()
            if isinstance(each, Arrange) and each.arrangement.id == step.arrangement.id
        ]
        held, ids = self._only(Hold), {name: i for i, name in block.inputs[0].columns}
        results = project(rows.rename_columns([ids[name] for name in rows.column_names]), block.outputs)
        keys, _ = partition_hashes(results, held.pending.key)
        results = results.append_column(HASH, pa.array(keys))
        clock = clock_of(self._plan.program.gates, self._watermarks, 0, 0)
        task = self._work(self._epoch + 1, self._plan.dataflow, self._state, clock).task(0)
        task.streams |= {arranged.input: rows, held.input: results}
        run_steps(task, (arranged, held))
        insert_runs(task)
        self._epoch, self._state = self._epoch + 1, self._state.with_reports({0: task.report})

    def _only(self, kind: type[OneStep]) -> OneStep:
        (step,) = [each for each in self._plan.dataflow.steps() if isinstance(each, kind)]
        return step

    @property
    def files(self) -> int:
        """How many runs are held."""
        return len(self._state.files())

    def _work(self, epoch: int, dataflow: Dataflow, state: State, clock: Clock) -> EpochWork:
        return EpochWork(self._setting(dataflow), epoch, state.parts, clock)

    def _without_history(self, state: State) -> State:
        """The state without the rows that have come out: nobody reads them again."""
        dataflow = self._plan.dataflow
        kept = replace(state, changelogs={})
        return kept.restricted_to((arrangement.id for arrangement in dataflow.arrangements), dataflow.views)

    def _collect(self) -> None:
        """Free the runs that the state no longer names."""
        gone = set(self._store.list()) - self._state.files()
        self._store.delete(sorted(gone))
        close_runs(self._store, gone)


def _drop(store: ObjectStore, place: str) -> None:
    drop_open_runs(store)
    drop_memory(place)

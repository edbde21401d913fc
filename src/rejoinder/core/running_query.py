"""Run a query in this process: the rounds of its plan over a store in memory, one epoch per call, without commits."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from rejoinder.ir.catalog import INTERNAL, Catalog, Source
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
from rejoinder.state.reading.changelog_reader import WHOLE, expanded
from rejoinder.state.watermarks import Signals, Watermarks
from rejoinder.store.objects.memory_objects import drop_memory
from rejoinder.store.objects.object_store import ObjectStore, open_store
from rejoinder.store.runs.net_rows import net_rows
from rejoinder.store.runs.run import close_runs, drop_open_runs, read_run
from rejoinder.watermarks.formula import value_of

VIEW = "result"
ARRIVAL = "__arrival"
"""The column with the number of a row in order of arrival, which distinguishes equal rows."""

_places = itertools.count()
_NO_TIME = Times(0, 0, 0)
OneStep = TypeVar("OneStep", Aggregate, Hold)


def stream(name: str, schema: pa.Schema, times: Sequence[str]) -> Source:
    """Return a source with explicit watermarks. It is `incomplete`: only rows that the query needs are kept."""
    return Source(name, "stream", schema, format=INTERNAL, watermarks=dict.fromkeys(times), incomplete=True)


class RunningQuery:
    """A query over streams. A call is atomic: if it raises, the state is unchanged."""

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
        """Process rows by source, and watermarks by source and column; return the rows that are emitted."""
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
        """Return the watermark of a result column: the received one, or the smallest retained time if that is less."""
        formula = self._plan.outputs[VIEW].get(column)
        value = LEAST if formula is None else value_of(formula, self._watermarks.times, LEAST)
        return None if value == LEAST else value

    def content(self, source: str) -> pa.Table:
        """Return the retained rows of a source in order of arrival. Some may have expired."""
        schema = self._plan.program.sources[source].schema
        tables = [schema.empty_table()]
        for arrangement in self._plan.dataflow.arrangements:
            if source_of(arrangement.relation) == source and not arrangement.is_lean:
                parts = self._state.arrangements[arrangement.id]
                tables += [read_run(self._store, ref).select(schema.names) for part in parts for ref in part.refs]
        table = contiguous(tables)
        _, first = np.unique(numbers(table, ARRIVAL), return_index=True)
        return take(table, first)

    def groups(self) -> tuple[pa.Table, tuple[str, ...]]:
        """Return the groups of the query's only aggregate, and their key columns. Some may have expired."""
        step = self._only(Aggregate)
        refs = [ref for part in self._state.arrangements[step.arrangement.id] for ref in part.refs]
        empty = step.arrangement.schema.append(pa.field(HASH, pa.uint64())).empty_table()
        rows = consolidate(contiguous([empty, *(read_run(self._store, ref) for ref in refs)]))
        return without(rows, [HASH, DIFF]), step.keys

    def restore_groups(self, rows: pa.Table) -> None:
        """Replace the groups of the only aggregate; their results are emitted when they are final."""
        aggregate, block = self._only(Aggregate), self._plan.program.views[VIEW]
        (arrange,) = [
            step
            for step in self._plan.dataflow.steps()
            if isinstance(step, Arrange) and step.arrangement.id == aggregate.arrangement.id
        ]
        hold, ids = self._only(Hold), {name: i for i, name in block.inputs[0].columns}
        results = project(rows.rename_columns([ids[name] for name in rows.column_names]), block.outputs)
        keys, _ = partition_hashes(results, hold.pending.key)
        results = results.append_column(HASH, pa.array(keys))
        clock = clock_of(self._plan.program.gates, self._watermarks, 0, 0)
        task = self._work(self._epoch + 1, self._plan.dataflow, self._state, clock).task(0)
        task.streams |= {arrange.input: rows, hold.input: results}
        run_steps(task, (arrange, hold))
        insert_runs(task)
        self._epoch, self._state = self._epoch + 1, self._state.with_reports({0: task.report})

    def _only(self, kind: type[OneStep]) -> OneStep:
        (only,) = [step for step in self._plan.dataflow.steps() if isinstance(step, kind)]
        return only

    @property
    def files(self) -> int:
        """Return the number of runs in the state."""
        return len(self._state.files())

    def _work(self, epoch: int, dataflow: Dataflow, state: State, clock: Clock) -> EpochWork:
        return EpochWork(self._setting(dataflow), epoch, state.parts, clock)

    def _without_history(self, state: State) -> State:
        """Remove emitted rows from the state: they are never read again."""
        dataflow = self._plan.dataflow
        kept = replace(state, changelogs={})
        return kept.restricted_to((arrangement.id for arrangement in dataflow.arrangements), dataflow.views)

    def _collect(self) -> None:
        """Delete the runs that the state no longer references."""
        unused = set(self._store.list()) - self._state.files()
        self._store.delete(sorted(unused))
        close_runs(self._store, unused)


def _drop(store: ObjectStore, place: str) -> None:
    drop_open_runs(store)
    drop_memory(place)

"""Run the rounds of an epoch: the state and the watermarks after it, with what became due in it emitted.

The engine and the core API both run their epochs by this. They write only files that no manifest names yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rejoinder.faults import reach
from rejoinder.plan.physical.dataflow import Dataflow
from rejoinder.plan.planning import Plan
from rejoinder.runtime.bucket_rounds import EpochWork
from rejoinder.runtime.task import Clock, Report
from rejoinder.state.executor import Executor
from rejoinder.state.flow_state import State
from rejoinder.state.gate_times import clock_of, due_dataflow
from rejoinder.state.retained_minimum import oldest_in
from rejoinder.state.watermarks import Signals, Watermarks

Work = Callable[[Dataflow, State, Clock], EpochWork]


@dataclass(frozen=True)
class Times:
    """When an epoch runs, in milliseconds: `now`, the time of the epoch before it, and since when silence counts."""

    now: int
    latest: int
    started: int


@dataclass(frozen=True)
class Outcome:
    """What an epoch leaves, and what it counted."""

    state: State
    watermarks: Watermarks
    totals: Report
    emission_seconds: float
    """The time after the rounds: watermarks, and what they made due."""


def run_rounds(
    plan: Plan,
    executor: Executor,
    work: Work,
    state: State,
    watermarks: Watermarks,
    splits: object,
    signals: Signals,
    times: Times,
) -> Outcome:
    """Run the rounds on splits, move the watermarks, and emit what is due by then. `work` says what tasks know."""
    gates = plan.program.gates
    before = clock_of(gates, watermarks, times.now, times.latest)
    todo = work(plan.dataflow, state, before)
    reports = executor.run(todo, splits)
    reach("after_tasks", todo.epoch)
    start = time.perf_counter()
    totals = totals_of(reports)
    state = state.with_reports(reports)
    moved = watermarks.advanced(plan.program.sources, totals.observed, signals, times.now, times.started)
    moved = moved.with_persisted(plan.persisted, oldest_in(plan, state)).with_late(totals.late)
    after = clock_of(gates, moved, times.now, times.now)
    moved = moved.with_emitted(after.emitted_up_to)
    due = due_dataflow(gates, state, before, after, plan.dataflow)
    if due is not None:
        reports = executor.run_listed(work(due, state, after), state.splits(due))
        state = state.with_reports(reports)
        for name, rows in totals_of(reports).rows_out.items():
            totals.rows_out[name] = totals.rows_out.get(name, 0) + rows
    kept = state.expired(gates, plan.dataflow.retentions, after)
    return Outcome(kept, moved, totals, time.perf_counter() - start)


def totals_of(reports: Mapping[int, Report]) -> Report:
    """Add up what all buckets counted."""
    totals = Report()
    for report in reports.values():
        totals.add(replace(report, spines={}, changelogs={}, emitted={}).to_json())
    return totals

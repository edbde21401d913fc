"""One epoch up to its commit: the rounds on the executor, what becomes due, and the content to be committed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rejoinder.engine.content import Content
from rejoinder.engine.epoch_progress import totals_of
from rejoinder.engine.state_quota import check_quota
from rejoinder.engine.time.gate_times import clock_of, due_dataflow
from rejoinder.engine.time.retained_minimum import oldest_in
from rejoinder.faults import reach
from rejoinder.runtime.task import Clock, Report
from rejoinder.state.flow_state import State, bytes_written
from rejoinder.state.watermarks import Signals

if TYPE_CHECKING:
    from rejoinder.engine.engine import Engine


@dataclass(frozen=True)
class Attempt:
    """What an epoch would commit, and what it counted."""

    content: Content
    totals: Report
    written: int
    """Bytes of new runs."""


def attempt(engine: Engine, content: Content, epoch: int, splits: object, signals: Signals, now: int) -> Attempt:
    """Run an epoch on top of `content`, the committed one. Changes nothing but files that nobody names yet."""
    plan, gates = content.plan, content.plan.program.gates
    before = clock_of(gates, content.watermarks, now, content.timeline.latest)
    reports = engine.executor.run(engine.work(plan.dataflow, epoch, content.state, before), splits)
    reach("after_tasks", epoch)
    totals = totals_of(reports)
    state = content.state.with_reports(reports)
    started = now if engine.started is None else engine.started
    moved = content.watermarks.advanced(plan.program.sources, totals.observed, signals, now, started)
    moved = moved.with_persisted(plan.persisted, oldest_in(plan, state)).with_late(totals.late)
    after = clock_of(gates, moved, now, now)
    moved = moved.with_emitted(after.emitted_up_to)
    state = _emit_due(engine, state, epoch, before, after, totals)
    check_quota(plan, content.catalog.views, state, engine.quota)
    reach("after_release", epoch)
    if engine.spool is not None:
        engine.spool.clear(epoch)
    deliveries = content.deliveries.after(epoch, totals.rows_in, totals.late, plan.program)
    done = replace(content, state=state, watermarks=moved, deliveries=deliveries)
    return Attempt(done, totals, bytes_written(content.state, state))


def _emit_due(engine: Engine, state: State, epoch: int, before: Clock, after: Clock, totals: Report) -> State:
    """Emit what became due in this very epoch, and drop the runs that are emitted as a whole."""
    gates = engine.plan.program.gates
    dataflow = due_dataflow(gates, state, before, after, engine.dataflow)
    if dataflow is not None:
        reports = engine.executor.run_listed(engine.work(dataflow, epoch, state, after), state.splits(dataflow))
        state = state.with_reports(reports)
        for name, rows in totals_of(reports).rows_out.items():
            totals.rows_out[name] = totals.rows_out.get(name, 0) + rows
    return state.expired(gates, engine.dataflow.retentions, after)

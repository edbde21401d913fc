"""Runs the hydration of a definition on the executor, including topic records that are read again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rejoinder.engine.hydration.fill import Filling
from rejoinder.faults import reach
from rejoinder.runtime.bucket_rounds import EpochWork
from rejoinder.runtime.task import Clock
from rejoinder.state.flow_state import State

if TYPE_CHECKING:
    from rejoinder.engine.engine import Engine


def hydrate(engine: Engine, state: State, filling: Filling, clock: Clock, epoch: int) -> State:
    """Run a hydration in an epoch. Returns the new state; its only effect is files that no manifest references yet."""
    if not filling.splits and not filling.topics:
        return filling.into(state, {})
    setting = replace(engine.setting(filling.dataflow), expiry=filling.expiry, hydrates=True)
    work = EpochWork(setting, epoch, filling.before, clock)
    if filling.topics and engine.topics is not None:
        again = [(source, engine.replay().position(source)) for source in filling.topics]
        reports = engine.topics.run(work, filling.splits, again)
    else:
        reports = engine.executor.run_listed(work, filling.splits)
    reach("in_hydration", epoch)
    if engine.spool is not None:
        engine.spool.clear(epoch)
    return filling.into(state, reports)

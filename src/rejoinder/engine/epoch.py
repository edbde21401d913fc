"""One epoch up to its commit: the rounds on the executor, and the version to be committed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rejoinder.engine.state_quota import check_quota
from rejoinder.engine.version import Version
from rejoinder.faults import reach
from rejoinder.runtime.task import Report
from rejoinder.state.epoch_rounds import Times, run_rounds
from rejoinder.state.flow_state import bytes_written
from rejoinder.state.watermarks import Signals

if TYPE_CHECKING:
    from rejoinder.engine.engine import Engine


@dataclass(frozen=True)
class Attempt:
    """The version that an epoch is going to commit, and its counts."""

    version: Version
    totals: Report
    written: int
    """Bytes of new runs."""
    emission_seconds: float
    """The part of the time that emission took (`state.epoch_rounds`)."""


def attempt(engine: Engine, version: Version, epoch: int, splits: object, signals: Signals, now: int) -> Attempt:
    """Run an epoch on top of `version`, the committed one. Writes only files that no manifest names yet."""
    plan = version.plan
    times = Times(now, version.timeline.latest, now if engine.started is None else engine.started)
    work = partial(engine.work, epoch)
    done = run_rounds(plan, engine.executor, work, version.state, version.watermarks, splits, signals, times)
    check_quota(plan, version.catalog.views, done.state, engine.quota)
    reach("after_emission", epoch)
    if engine.spool is not None:
        engine.spool.clear(epoch)
    deliveries = version.deliveries.after(epoch, done.totals.rows_in, done.totals.late, plan.program)
    changed = replace(version, state=done.state, watermarks=done.watermarks, deliveries=deliveries)
    return Attempt(changed, done.totals, bytes_written(version.state, done.state), done.emission_seconds)

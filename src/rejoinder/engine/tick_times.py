"""Ticks: when an epoch is necessary although no input arrives."""

from __future__ import annotations

from rejoinder.engine.version import Version
from rejoinder.plan.rounds.program import Program
from rejoinder.state.gate_times import next_tick


def may_tick(program: Program) -> bool:
    """Return whether an epoch without input may be necessary: to emit by the clock, or to mark sources idle."""
    timed = any(source.idle_after is not None or source.has_explicit_watermarks for source in program.sources.values())
    return timed or any(gate.interval for gate in program.gates)


def next_due(version: Version, started: int) -> int | None:
    """Return the processing time at which pending changes are due or a partition becomes idle; None if never.

    Silence of partitions counts from `started` on.
    """
    program = version.plan.program
    tick = next_tick(program.gates, version.state, version.timeline.latest)
    idle = version.watermarks.next_idle(program.sources.values(), started)
    return min((time for time in (tick, idle) if time is not None), default=None)

"""When an epoch has something to do although no input arrives."""

from __future__ import annotations

from rejoinder.engine.content import Content
from rejoinder.engine.time.gate_times import next_tick
from rejoinder.plan.rounds.program import Program


def may_tick(program: Program) -> bool:
    """Whether the clock alone may ask for an epoch: for changes that it emits, or sources that become idle."""
    timed = any(source.idle_after is not None or source.has_explicit_watermarks for source in program.sources.values())
    return timed or any(gate.interval for gate in program.gates)


def next_due(content: Content, started: int) -> int | None:
    """The processing time at which pending changes are due or a source becomes idle; None if nothing is pending.

    `started` is when silence of sources began to count.
    """
    program = content.plan.program
    tick = next_tick(program.gates, content.state, content.timeline.latest)
    idle = content.watermarks.next_idle(program.sources.values(), started)
    return min((each for each in (tick, idle) if each is not None), default=None)

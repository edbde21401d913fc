"""What time it is for a gate, and what comes out because of that: how far gates are open, and what became due."""

from __future__ import annotations

from collections.abc import Iterable

from rejoinder.ir.logical import RELEASE
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.plan.physical.dataflow import Dataflow, DueScan
from rejoinder.plan.physical.steps import Channel, Emit, Send
from rejoinder.plan.rounds.program import Gate, row_arrangement
from rejoinder.runtime.task import Clock
from rejoinder.state.flow_state import State
from rejoinder.state.watermarks import Watermarks
from rejoinder.store.runs.run import lies_in
from rejoinder.watermarks.formula import value_of


def released(gate: Gate, watermarks: Watermarks, now: int) -> int:
    """How far a gate is open: on the clock, or as far as its watermarks are, and never less than it was."""
    if gate.interval:
        return now
    reached = LEAST if gate.limit is None else value_of(gate.limit, watermarks.times, LEAST)
    return max(reached, watermarks.opened.get(gate.pending.id, LEAST))


def next_tick(gates: Iterable[Gate], state: State, opened: int) -> int | None:
    """When the first of the changes that wait for the clock come out, if they were let out up to `opened`.

    In milliseconds, as `opened`; None if none wait. What waits for a tick is in runs of its own.
    """
    ticks = [
        span[0]
        for gate in gates
        if gate.interval
        for part in state.arrangements.get(gate.pending.id, ())
        for ref in part.refs
        if (span := ref.span(RELEASE)) is not None and span[0] > opened * 1000
    ]
    return -(-min(ticks) // 1000) if ticks else None


def clock_of(gates: Iterable[Gate], watermarks: Watermarks, now: int, opened: int) -> Clock:
    """What tasks know of time (milliseconds): the epoch's clock, and how far the gates were open at `opened`."""
    open_until = {gate.pending.id: released(gate, watermarks, opened * 1000) for gate in gates}
    return Clock(now * 1000, open_until, watermarks.times)


def due_dataflow(gates: Iterable[Gate], state: State, before: Clock, after: Clock, views: Dataflow) -> Dataflow | None:
    """The rounds that let out what became due between two clocks; None if nothing did."""
    scans: dict[str, DueScan] = {}
    sends, emits = [], []
    for number, gate in enumerate(gates):
        since, until = before.released[gate.pending.id], after.released[gate.pending.id]
        refs = [ref for part in state.arrangements.get(gate.pending.id, ()) for ref in part.refs]
        if until <= since or not any(lies_in(ref, RELEASE, since, until) for ref in refs):
            continue
        name = f"due:{gate.pending.relation}"
        scans[name] = DueScan(gate.pending, name, since, until)
        key = row_arrangement(gate.view, views.views[gate.view]).key
        channel = Channel(number, f"{name}/rows", key, 1)
        sends.append(Send(name, channel))
        emits.append(Emit(channel.stream, gate.view))
    if not scans:
        return None
    return Dataflow(dict(scans), (tuple(sends), tuple(emits)), views=views.views)

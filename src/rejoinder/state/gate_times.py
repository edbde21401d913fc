"""The times of gates: up to which time each gate emits, when the next tick is, and which pending changes are due."""

from __future__ import annotations

from collections.abc import Iterable

from rejoinder.ir.identities import ViewRows
from rejoinder.ir.logical import EMIT_AT
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.plan.physical.dataflow import Dataflow, DueScan
from rejoinder.plan.physical.steps import Channel, Emit, Send
from rejoinder.plan.rounds.program import Gate, row_arrangement
from rejoinder.runtime.task import Clock
from rejoinder.state.flow_state import State
from rejoinder.state.watermarks import Watermarks
from rejoinder.store.runs.run import lies_in
from rejoinder.watermarks.formula import value_of

INSIDE_TICK = 1_000_000
"""The longest time between epochs, in microseconds, while rows of a temporal filter are to enter or leave."""


def emitted_up_to(gate: Gate, watermarks: Watermarks, now: int) -> int:
    """Return the time up to which a gate emits: the clock, or the value of its limit. It never falls back."""
    if gate.interval:
        return now
    reached = LEAST if gate.limit is None else value_of(gate.limit, watermarks.times, LEAST)
    return max(reached, watermarks.emitted_up_to.get(gate.pending.id, LEAST))


def next_tick(gates: Iterable[Gate], state: State, emitted: int) -> int | None:
    """Return when the next pending changes are due by the clock, given that those up to `emitted` have been emitted.

    Both times are in milliseconds; None if no change is pending. The pending changes of a tick are in runs of their
    own, so the span of a run is the time of its tick.
    """
    emitted *= 1000
    ticks = []
    for gate in (gate for gate in gates if gate.interval):
        spans = (ref.span(EMIT_AT) for part in state.arrangements.get(gate.pending.id, ()) for ref in part.refs)
        for first, last in (span for span in spans if span is not None):
            if first > emitted:
                ticks.append(first)
            elif gate.is_inside and last > emitted:  # a run of many times, of which the next one is not known
                ticks.append(min(last, emitted + INSIDE_TICK))
    return -(-min(ticks) // 1000) if ticks else None


def clock_of(gates: Iterable[Gate], watermarks: Watermarks, now: int, emitted: int) -> Clock:
    """Return the clock of tasks: the time `now` of the epoch, and up to which time each gate had emitted at `emitted`.

    Both arguments are in milliseconds.
    """
    limits = {gate.pending.id: emitted_up_to(gate, watermarks, emitted * 1000) for gate in gates}
    return Clock(now * 1000, limits, watermarks.times)


def due_dataflow(gates: Iterable[Gate], state: State, before: Clock, after: Clock, views: Dataflow) -> Dataflow | None:
    """Return the rounds that emit the changes that became due between two clocks; None if none did."""
    scans: dict[str, DueScan] = {}
    sends, emits = [], []
    for number, gate in enumerate(gates):
        if gate.is_inside:
            continue
        since, until = before.emitted_up_to[gate.pending.id], after.emitted_up_to[gate.pending.id]
        refs = [ref for part in state.arrangements.get(gate.pending.id, ()) for ref in part.refs]
        if until <= since or not any(lies_in(ref, EMIT_AT, since, until) for ref in refs):
            continue
        name = f"due:{gate.pending.relation}"
        scans[name] = DueScan(gate.pending, name, since, until)
        key = row_arrangement(ViewRows(gate.view), views.views[gate.view]).key
        channel = Channel(number, f"{name}/rows", key, 1)
        sends.append(Send(name, channel))
        emits.append(Emit(channel.stream, gate.view))
    if not scans:
        return None
    return Dataflow(dict(scans), (tuple(sends), tuple(emits)), views=views.views)

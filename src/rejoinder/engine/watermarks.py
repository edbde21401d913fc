"""Watermarks of the sources' event-time columns, and what they release.

A watermark w of a column says that no row with a smaller time comes any more. It follows the largest time seen, at the
declared delay, or is told (`Driver.watermark`); it only rises. It is committed with the epoch that moves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rejoinder.engine.state import State
from rejoinder.kernels.ordered import LEAST
from rejoinder.operators.task import Clock
from rejoinder.plan.catalog import Source
from rejoinder.plan.physical import Channel, Dataflow, DueScan, Emit, Send
from rejoinder.plan.program import Gate, row_arrangement

Times = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Watermarks:
    """The watermark of each event-time column, by source and column, in the column's own unit."""

    values: Times = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give plain data for the manifest."""
        return {source: dict(columns) for source, columns in self.values.items()}

    def advanced(self, sources: Mapping[str, Source], observed: Times, told: Times) -> Watermarks:
        """The watermarks after an epoch that saw the `observed` largest times and was `told` others."""
        result: dict[str, dict[str, int]] = {}
        for name, source in sources.items():
            for column, delay in source.watermarks.items():
                seen = observed.get(name, {}).get(column)
                candidates = [self.of(name, column), told.get(name, {}).get(column)]
                candidates.append(seen - delay if seen is not None and delay is not None else None)
                known = [value for value in candidates if value is not None]
                if known:
                    result.setdefault(name, {})[column] = max(known)
        return Watermarks(result)

    def of(self, source: str, column: str) -> int | None:
        """The watermark of a column; None before the first."""
        return self.values.get(source, {}).get(column)


def released(gate: Gate, watermarks: Watermarks, now: int) -> int:
    """How far a gate is open: on the clock, or at the smallest of its watermarks."""
    if gate.interval:
        return now
    values = [watermarks.of(source, column) for source, column in gate.origins]
    return min((LEAST if value is None else value for value in values), default=LEAST)


def next_tick(gates: Iterable[Gate], state: State, opened: int) -> int | None:
    """When the first of the changes that wait for the clock come out, if they were let out up to `opened`.

    In milliseconds, as `opened`; None if none wait. What waits for a tick is in a time segment of its own.
    """
    ticks = [
        ref.segment * gate.width
        for gate in gates
        if gate.interval
        for part in state.arrangements.get(gate.pending.id, ())
        for ref in part.refs
        if ref.segment * gate.width > opened * 1000
    ]
    return -(-min(ticks) // 1000) if ticks else None


def clock_of(gates: Iterable[Gate], watermarks: Watermarks, now: int, opened: int) -> Clock:
    """What tasks know of time (milliseconds): the epoch's clock, and how far the gates were open at `opened`."""
    open_until = {gate.pending.id: released(gate, watermarks, opened * 1000) for gate in gates}
    return Clock(now * 1000, open_until, watermarks.to_json())


def due_dataflow(gates: Iterable[Gate], state: State, before: Clock, after: Clock, views: Dataflow) -> Dataflow | None:
    """The rounds that let out what became due between two clocks; None if nothing did."""
    scans: dict[str, DueScan] = {}
    sends, emits = [], []
    for number, gate in enumerate(gates):
        since, until = before.released[gate.pending.id], after.released[gate.pending.id]
        refs = [ref for part in state.arrangements.get(gate.pending.id, ()) for ref in part.refs]
        if until <= since or not any(ref.segment * gate.width <= until for ref in refs):
            continue
        name = f"due:{gate.pending.relation}"
        scans[name] = DueScan(gate.pending, name, gate.width, since, until)
        key = row_arrangement(gate.view, views.views[gate.view]).key
        channel = Channel(number, f"{name}/rows", key, 1)
        sends.append(Send(name, channel))
        emits.append(Emit(channel.stream, gate.view))
    if not scans:
        return None
    return Dataflow(dict(scans), (tuple(sends), tuple(emits)), views=views.views)

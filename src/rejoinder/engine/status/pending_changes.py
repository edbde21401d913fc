"""What waits: the views with changes that have not come out yet, and what they wait for, in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from rejoinder.engine.engine import Engine
from rejoinder.engine.time.gate_times import emitted_up_to, next_tick
from rejoinder.ir.logical import EMIT_AT
from rejoinder.plan.rounds.program import Gate
from rejoinder.state.row_text import text


def waiting(engine: Engine) -> dict[str, str]:
    """What the changes of each view that has some wait for, after the last committed epoch."""
    result: dict[str, list[str]] = {}
    with engine.lock:
        for gate in engine.plan.program.gates:
            for words in _words(engine, gate):
                result.setdefault(gate.view, []).append(words)
    return {view: " or ".join(words) for view, words in result.items()}


def _words(engine: Engine, gate: Gate) -> Iterator[str]:
    if gate.interval:
        tick = next_tick([gate], engine.state, engine.timeline.latest)
        if tick is not None:
            yield f"until {text(datetime.fromtimestamp(tick / 1000, timezone.utc).replace(tzinfo=None))} (UTC)"
    elif _has_some(engine, gate):
        listed = " and ".join(f"{source}.{column}" for source, column in gate.origins)
        yield f"for the watermark{'s' if len(gate.origins) > 1 else ''} of {listed}"


def _has_some(engine: Engine, gate: Gate) -> bool:
    """Whether anything is beyond the watermarks."""
    limit = emitted_up_to(gate, engine.watermarks, 0)
    refs = [ref for part in engine.state.arrangements.get(gate.pending.id, ()) for ref in part.refs]
    spans = [ref.span(EMIT_AT) for ref in refs]
    return any(span is not None and span[1] > limit for span in spans)

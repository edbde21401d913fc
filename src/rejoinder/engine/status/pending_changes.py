"""Pending changes: which views have changes that are not emitted yet, and what these wait for, as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from rejoinder.engine.engine import Engine
from rejoinder.engine.version import Version
from rejoinder.formats.text.row_text import text
from rejoinder.ir.logical import EMIT_AT
from rejoinder.plan.rounds.program import Gate
from rejoinder.state.gate_times import emitted_up_to, next_tick


def pending_views(engine: Engine) -> dict[str, str]:
    """Return what the pending changes of each view wait for, after the last committed epoch.

    Views without pending changes are left out.
    """
    result: dict[str, list[str]] = {}
    version = engine.version
    for gate in (gate for gate in version.plan.program.gates if not gate.is_inside):
        for condition in _conditions(version, gate):
            result.setdefault(gate.view, []).append(condition)
    return {view: " or ".join(conditions) for view, conditions in result.items()}


def _conditions(version: Version, gate: Gate) -> Iterator[str]:
    if gate.interval:
        tick = next_tick([gate], version.state, version.timeline.latest)
        if tick is not None:
            yield f"until {text(datetime.fromtimestamp(tick / 1000, timezone.utc).replace(tzinfo=None))} (UTC)"
    elif _has_pending(version, gate):
        listed = " and ".join(f"{source}.{column}" for source, column in gate.origins)
        yield f"for the watermark{'s' if len(gate.origins) > 1 else ''} of {listed}"


def _has_pending(version: Version, gate: Gate) -> bool:
    """Return whether a gate has changes above its limit. Reads the spans of runs, no rows."""
    limit = emitted_up_to(gate, version.watermarks, 0)
    refs = [ref for part in version.state.arrangements.get(gate.pending.id, ()) for ref in part.refs]
    spans = [ref.span(EMIT_AT) for ref in refs]
    return any(span is not None and span[1] > limit for span in spans)

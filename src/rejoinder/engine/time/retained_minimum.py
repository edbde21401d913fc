"""How old the rows are that hold a join, or a view that waits: what is remembered of them besides watermarks.

A join is held by the oldest row that it keeps, and a view by the oldest that waits. Each run knows the span of its
times, so no row is read to find it: a run of which only a part is over counts as it was written, or as far back as the
bounds of the join reach.
"""

from __future__ import annotations

from rejoinder.ir.logical import EMIT_AT
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.planner import Plan
from rejoinder.runtime.task import expiry_of
from rejoinder.state.flow_state import State
from rejoinder.state.watermarks import Oldest, Times
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.time_values import NO_TIME
from rejoinder.watermarks.formula import Kept, value_of


def oldest_in(plan: Plan, state: State) -> Oldest:
    """Tell the oldest time in what is kept for a join, or waits, after an epoch; what is over by then is left out."""
    dataflow = plan.dataflow
    kept_for: dict[tuple[str, str], list[str]] = {}
    for arrangement in dataflow.arrangements:
        for user in dataflow.users[arrangement.id]:
            kept_for.setdefault((arrangement.relation, user), []).append(arrangement.id)
    gates = {gate.pending.id: gate for gate in plan.program.gates}

    def expiry(name: str, times: Times) -> Expiry | None:
        gate = gates.get(name)
        if gate is not None and gate.limit is not None:
            return Expiry.below(EMIT_AT, value_of(gate.limit, times, LEAST) + 1)
        retention = dataflow.retentions.get(name)
        return None if retention is None else expiry_of(retention, times)

    def oldest(kept: Kept, times: Times) -> int:
        bound, found = LEAST if kept.met is None else value_of(kept.met, times, LEAST), NO_TIME
        for name in kept_for[kept.relation, kept.user]:  # whoever joins it looks it up
            over = expiry(name, times)
            for ref in (ref for part in state.arrangements[name] for ref in part.refs):
                low, high = ref.span(kept.column) or (LEAST, NO_TIME)
                if high >= bound and not (over is not None and over.is_expired(ref)):
                    found = min(found, low)
        return max(bound, found)

    return oldest

"""The oldest retained row of a join, and the oldest pending row of a view: they limit output watermarks.

A join cannot advance past the oldest row that it retains, nor a view past its oldest pending row. Each run stores the
span of its times, so no row is read. A run that is only partly expired counts with its whole span, but no further back
than the bounds of the join allow.
"""

from __future__ import annotations

from rejoinder.ir.identities import RelationId
from rejoinder.ir.logical import EMIT_AT
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.plan.planning import Plan
from rejoinder.runtime.task import expiry_of
from rejoinder.state.flow_state import State
from rejoinder.state.watermarks import Oldest, Times
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.time_values import NO_TIME
from rejoinder.watermarks.formula import RetainedMinimum, value_of


def oldest_in(plan: Plan, state: State) -> Oldest:
    """Return a function that gives the oldest time among the retained or pending rows, without expired runs.

    `state` is the state after the tasks of an epoch.
    """
    dataflow = plan.dataflow
    kept_for: dict[tuple[RelationId, object], list[str]] = {}
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

    def oldest(kept: RetainedMinimum, times: Times) -> int:
        bound, minimum = LEAST if kept.met is None else value_of(kept.met, times, LEAST), NO_TIME
        for name in kept_for[kept.relation, kept.user]:  # every arrangement that the join looks the relation up in
            rule = expiry(name, times)
            for ref in (ref for part in state.arrangements[name] for ref in part.refs):
                low, high = ref.span(kept.column) or (LEAST, NO_TIME)
                if high >= bound and not (rule is not None and rule.is_expired(ref)):
                    minimum = min(minimum, low)
        return max(bound, minimum)

    return oldest

"""Completeness: which existing arrangements have all rows that a new plan needs.

Retention decides. An arrangement has every row of its relation that its users could still need at the last commit. If a
new plan needs more rows, the arrangement is hydrated again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Protocol

import numpy as np
import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.ir.catalog import Source
from rejoinder.ir.identities import NEVER, SourceRows, source_of
from rejoinder.kernels.arrow.ordered import LEAST, as_column
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.retention_bound import Retention
from rejoinder.plan.planning import Plan
from rejoinder.plan.schedule.retained_relations import Gap, Holdings
from rejoinder.plan.time.start_condition import clock_columns
from rejoinder.runtime.task import expiry_of
from rejoinder.state.deliveries import Deliveries
from rejoinder.state.flow_state import State
from rejoinder.state.watermarks import Times
from rejoinder.store.runs.expiry import Below

QUERY = "ad-hoc query"
"""The name of an ad-hoc query in a plan."""


class Present(Protocol):
    """The committed state (`engine.version.Version`)."""

    @property
    def plan(self) -> Plan: ...
    @property
    def state(self) -> State: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def times(self) -> Times: ...


def covers(old: Retention | None, before: Times, new: Retention | None, after: Times) -> bool:
    """Return whether an arrangement with the retention `old` has all rows that one with the retention `new` keeps.

    A new user needs a row until one of its limits has passed it. So it is enough that there is an old user for which
    each limit passes a row no earlier than some limit of the new user.
    """
    if old is None:
        return True
    if old.condition is not None and (new is None or not set(new.conditions) <= set(old.conditions)):
        return False
    had = expiry_of(old, before).users
    if new is None or (old.condition is not None and new.condition is None):
        return old.condition is None and any(all(_drops_nothing(each) for each in user) for user in had)
    return all(any(_includes(user, wanted) for user in had) for wanted in expiry_of(new, after).users)


def has_columns(old: Arrangement, new: Arrangement) -> bool:
    """Return whether an arrangement has all columns and rows that one of the same id needs, apart from retention."""
    if not new.is_lean:
        return not old.is_lean
    return set(new.schema.names) <= set(old.schema.names)


def _drops_nothing(limit: Below) -> bool:
    return limit.bound == LEAST and limit.keeps_nulls


def _includes(user: tuple[Below, ...], wanted: tuple[Below, ...]) -> bool:
    return all(
        _drops_nothing(limit)
        or any(
            other.column == limit.column and other.bound >= limit.bound and (limit.keeps_nulls or not other.keeps_nulls)
            for other in wanted
        )
        for limit in user
    )


def holdings_of(present: Present, new: Plan, after: Times, unreadable: Callable[[Source], str | None]) -> Holdings:
    """Return the parts of the committed state that a new plan can be hydrated from. Its watermarks are `after`.

    `unreadable` returns why the delivered rows of a source cannot be read again; None if they can.
    """
    before, dataflow, state = present.times, present.plan.dataflow, present.state
    existing = [a for a in dataflow.arrangements if a.id in state.arrangements]

    def holds(arrangement: Arrangement, retention: Retention | None) -> bool:
        return covers(dataflow.retentions.get(arrangement.id), before, retention, after)

    needed = new.dataflow.retentions
    by_id = {a.id: a for a in existing}
    held = {
        a.id
        for a in new.dataflow.arrangements
        if a.id in by_id and has_columns(by_id[a.id], a) and holds(a, needed.get(a.id))
    }
    donors = {
        a.id: donor
        for a in new.dataflow.arrangements
        if a.id not in held
        for donor in existing
        if donor.relation == a.relation and not donor.is_lean and holds(donor, needed.get(a.id))
    }
    sources = new.program.sources
    return Holdings(
        complete=tuple(a for a in existing if not a.is_lean and holds(a, None)),
        held=held,
        filled={a.id for a in existing if a.id in held and holds(a, None)},
        donors=donors,
        views=set(dataflow.views) & set(state.changelogs),
        names={name for name in new.program.views if name != QUERY},
        late=present.deliveries.late,
        delivered=present.deliveries.last,
        since=_since(present),
        unreadable=lambda name: unreadable(sources[name]),
        gap=lambda name, reason: _gap(present, name, reason),
    )


def _since(present: Present) -> dict[str, list[tuple[Arrangement, str, int]]]:
    """Return, by source, the arrangements with every row whose column is not below a bound."""
    result: dict[str, list[tuple[Arrangement, str, int]]] = {}
    late, retentions = present.deliveries.late, present.plan.dataflow.retentions
    for arrangement in present.plan.dataflow.arrangements:
        rows, retention = arrangement.relation, retentions.get(arrangement.id)
        if not isinstance(rows, SourceRows) or rows.starts or retention is None or retention.condition is not None:
            continue
        if arrangement.is_lean:
            continue
        if rows.on_time and late.get(rows.source, NEVER) != rows.late:
            continue
        for user in expiry_of(retention, present.times).users:
            if len({limit.column for limit in user}) == 1:
                bound = max(limit.bound for limit in user)
                result.setdefault(rows.source, []).append((arrangement, user[0].column, bound))
    return result


def complete_sources(plan: Plan, times: Times, deliveries: Deliveries) -> dict[str, bool]:
    """Return by source whether its rows are complete. Tables and sources with a changelog always are."""
    result = {
        name: source_side(source).keeps_changes or source.kind == "table"
        for name, source in plan.program.sources.items()
    }
    for arrangement in plan.dataflow.arrangements:
        rows = arrangement.relation
        if not isinstance(rows, SourceRows) or rows.starts or arrangement.is_lean:
            continue
        is_all = not rows.on_time or deliveries.late.get(rows.source, NEVER) == rows.late
        retention = plan.dataflow.retentions.get(arrangement.id)
        result[rows.source] |= is_all and covers(retention, times, None, times)
    return result


def _gap(present: Present, source: str, reason: str) -> Gap:
    """Describe which rows of a source are missing, since when, and because of which views."""
    plan, expired = present.plan, dict[str, int]()
    declared = plan.program.sources.get(source)
    for arrangement in plan.dataflow.arrangements:
        retention = plan.dataflow.retentions.get(arrangement.id)
        if source_of(arrangement.relation) == source and retention is not None:
            bounds = [limit for user in expiry_of(retention, present.times).users for limit in user]
            for limit in bounds:
                expired[limit.column] = min(limit.bound, expired.get(limit.column, limit.bound))
    kinds = {} if declared is None else {field.name: field.type for field in declared.schema}
    listed = [
        f"rows with `{name}` below {_time(bound, kinds[name])} have expired"
        for name, bound in expired.items()
        if bound != LEAST and name in kinds
    ]
    began = present.deliveries.incomplete.get(source)
    cause = ""
    if began is not None:
        time = datetime.fromtimestamp(began.time_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
        views = ", ".join(f"`{view}`" for view in began.views)
        readers = f"only {views} read `{source}`, and keep only what they need" if views else "no view reads it"
        cause = f"since epoch {max(0, began.epoch)} ({time} UTC) {readers}"
    held = _since(present).get(source, [])
    clocks = () if declared is None else clock_columns(declared)
    since = [_time(bound, kinds[name]) for _, name, bound in held if name in clocks and bound != LEAST]
    missing = " and ".join(listed) or "its rows are not kept once they are processed"
    return Gap(missing, cause, reason, min(since, default=""))


def _time(value: int, kind: pa.DataType) -> str:
    """Format an event time."""
    return str(as_column(np.array([value]), kind)[0].as_py()).removesuffix("+00:00")

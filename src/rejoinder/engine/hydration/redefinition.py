"""Adopt a new catalog at an epoch boundary: plan it, hydrate new views, and advance the gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rejoinder.engine.hydration.fill import Filling, prepare
from rejoinder.engine.hydration.hydrate import hydrate
from rejoinder.engine.hydration.replacement import refuse_spark_state, replaced_views, retired, with_differences
from rejoinder.engine.hydration.source_replay import SourceReplay
from rejoinder.engine.hydration.view_starts import planned_from_start, settled
from rejoinder.engine.state_quota import check_quota
from rejoinder.engine.version import Version
from rejoinder.errors import Incomplete
from rejoinder.ir.catalog import Catalog
from rejoinder.plan.join.fan_out import Statistics, are_similar
from rejoinder.plan.planning import Plan
from rejoinder.planner import plan, refuse_products
from rejoinder.runtime.task import Clock
from rejoinder.sql.parse.text_caps import with_stack
from rejoinder.state.completeness import covers, has_columns
from rejoinder.state.gate_times import clock_of
from rejoinder.state.watermarks import Watermarks

if TYPE_CHECKING:
    from rejoinder.engine.engine import Engine


def adopted(engine: Engine, before: Version, catalog: Catalog) -> tuple[Version, int]:
    """Return the version for a new catalog on top of `before`, and the epoch that it commits.

    That is the next one if views are replaced, and the last one otherwise. Before the first epoch nothing has been read
    or delivered, so there is no difference to show. Raises `Incomplete` or `Unsupported`.
    """
    views = replaced_views(before, catalog)
    if not views or engine.epoch < 0:
        return redefined(engine, retired(before, views, catalog), catalog, engine.epoch), engine.epoch
    refuse_spark_state(before, views)
    epoch = engine.epoch + 1
    version = redefined(engine, retired(before, views, catalog), catalog, epoch)
    return with_differences(engine, before, version, views, epoch), epoch


def redefined(engine: Engine, before: Version, catalog: Catalog, epoch: int) -> Version:
    """Return the version for a new catalog, with new views hydrated on top of `before`, with rows of `epoch`.

    Its only effect is files that no manifest references yet. Raises `Incomplete` if a new view needs rows that have
    expired.
    """
    planned = redefinition(before, engine.replay(before), settled(catalog, before.state, before.deliveries))
    catalog, new, old = planned.catalog, planned.plan, before.plan.dataflow
    net_rows = partial(before.state.net_rows, engine.store)
    present = replace(old, views={name: old.views[name] for name in old.views if name in before.state.changelogs})
    refuse_products(new, present, before.state.statistics(), engine.max_pairs, net_rows)
    declared = {function.reference for function in catalog.functions if function not in before.catalog.functions}
    engine.executor.check((new.dataflow.functions | declared) - old.functions)
    state = hydrate(engine, before.state, planned.filling, planned.clock, epoch)
    state = state.restricted_to([a.id for a in new.dataflow.arrangements], new.dataflow.views)
    changed = [view for view in catalog.views if view not in before.catalog.views]
    check_quota(new, changed, state, engine.quota)
    created = {name: before.created.get(name, epoch) for name in new.dataflow.views}
    return replace(before, catalog=catalog, plan=new, state=state, created=created, watermarks=planned.watermarks)


@dataclass(frozen=True)
class Redefinition:
    """A planned catalog, ready for hydration."""

    catalog: Catalog
    plan: Plan
    filling: Filling
    watermarks: Watermarks
    clock: Clock


def redefinition(before: Version, replay: SourceReplay, catalog: Catalog) -> Redefinition:
    """Plan a catalog. Incomplete sources of new views begin at STARTING AT; without it, raises `Incomplete`."""
    return with_stack([view.query for view in catalog.views], _redefinition, before, replay, catalog)


def _redefinition(before: Version, replay: SourceReplay, catalog: Catalog) -> Redefinition:
    return planned_from_start(catalog, before.state, before.epoch, partial(_planned, before, replay))[1]


def _planned(before: Version, replay: SourceReplay, catalog: Catalog) -> Redefinition:
    """Plan a catalog and the hydration of its new views.

    With current statistics, a plan may need arrangements that cannot be filled. With those of the last plan, only new
    views need new arrangements.
    """
    try:
        return _planned_with(before, replay, catalog, before.state.statistics())
    except Incomplete:
        return _planned_with(before, replay, catalog, before.plan.program.statistics)


def _planned_with(
    before: Version, replay: SourceReplay, catalog: Catalog, statistics: Mapping[str, Statistics]
) -> Redefinition:
    new = plan(catalog, statistics)
    watermarks = before.watermarks.with_persisted(new.persisted)
    clock = clock_of(new.program.gates, watermarks, before.timeline.latest, before.timeline.latest)
    filling = prepare(before, replay, new, watermarks.times)
    return Redefinition(catalog, new, filling, watermarks.with_emitted(clock.emitted_up_to), clock)


def reordered(version: Version) -> Version:
    """Return the version with a plan of current statistics, if the existing arrangements hold all rows it needs.

    The next commit has these statistics. So a flow that is started again, and has not grown much, is planned once.
    """
    statistics = version.state.statistics()
    if are_similar(version.plan.program.statistics, statistics):
        return version
    new = plan(version.catalog, statistics)
    before, after, times = version.dataflow, new.dataflow, version.times
    existing = {a.id: a for a in before.arrangements}
    if {a.id for a in after.arrangements} == existing.keys() and all(
        has_columns(existing[a.id], a) and covers(before.retentions.get(a.id), times, after.retentions.get(a.id), times)
        for a in after.arrangements
    ):
        return replace(version, plan=new)
    return version

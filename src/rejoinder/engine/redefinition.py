"""How a new catalog is taken over at an epoch boundary: the plan, what has to be filled, the clock after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from rejoinder.engine.clocks import clock_of
from rejoinder.engine.filling import Filler, Filling, prepare
from rejoinder.engine.planner import Plan, plan
from rejoinder.engine.starting import planned_from_start
from rejoinder.engine.timeline import Timeline
from rejoinder.engine.watermarks import Watermarks
from rejoinder.errors import Incomplete
from rejoinder.operators.task import Clock
from rejoinder.plan.catalog import Catalog
from rejoinder.plan.delta import Statistics
from rejoinder.sql.text_limits import with_stack


class Redefined(Filler, Protocol):
    """What a definition changes: the engine."""

    watermarks: Watermarks
    timeline: Timeline

    @property
    def epoch(self) -> int: ...


@dataclass(frozen=True)
class Redefinition:
    """A catalog that is planned and can be filled."""

    catalog: Catalog
    plan: Plan
    filling: Filling
    watermarks: Watermarks
    clock: Clock


def redefinition(flow: Redefined, catalog: Catalog) -> Redefinition:
    """Plan a catalog. Sources of new views that are incomplete begin where the views say; else raise `Incomplete`."""
    return with_stack([view.query for view in catalog.views], _redefinition, flow, catalog)


def _redefinition(flow: Redefined, catalog: Catalog) -> Redefinition:
    return planned_from_start(catalog, flow.state, flow.epoch, partial(_planned, flow))[1]


def _planned(flow: Redefined, catalog: Catalog) -> Redefinition:
    """Plan a catalog and how what is new is filled.

    The statistics of today may ask for arrangements that nothing can fill; those of the last plan ask for none but
    for the new views.
    """
    try:
        return _planned_with(flow, catalog, flow.state.statistics())
    except Incomplete:
        return _planned_with(flow, catalog, flow.plan.program.statistics)


def _planned_with(flow: Redefined, catalog: Catalog, statistics: Mapping[str, Statistics]) -> Redefinition:
    new = plan(catalog, statistics)
    watermarks = flow.watermarks.remembering(new.remembered)
    clock = clock_of(new.program.gates, watermarks, flow.timeline.latest, flow.timeline.latest)
    filling = prepare(flow, new, watermarks.times)
    return Redefinition(catalog, new, filling, watermarks.opening(clock.released), clock)

"""Where new views start to read their sources: determined when they are created, and stored in the catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from rejoinder.errors import Incomplete, NotCommitted
from rejoinder.ir.catalog import Catalog, Source, View
from rejoinder.ir.source_reading import Reading
from rejoinder.plan.time.start_condition import clock_columns
from rejoinder.sql.statements.query_text import named_relations
from rejoinder.sql.statements.start_text import NOW, epoch_of, micros_of
from rejoinder.state.completeness import QUERY
from rejoinder.state.deliveries import Deliveries
from rejoinder.state.flow_state import State

_EPOCH = datetime(1970, 1, 1)
Planned = TypeVar("Planned")


def settled(catalog: Catalog, state: State, deliveries: Deliveries) -> Catalog:
    """Return the catalog with, for every new view, the last late rows of its sources before it was created."""
    for view in _new(catalog, state):
        late = _late(view.reading, deliveries)
        if late != view.reading.late:
            catalog = catalog.with_reading(view.name, replace(view.reading, late=late))
    return catalog


def _late(reading: Reading, deliveries: Deliveries) -> dict[str, int]:
    """Return the last late rows of the sources. A replaced view that has a start keeps its rows since then."""
    started = {*reading.epochs, *reading.times}
    late = {source: epoch for source, epoch in deliveries.late.items() if source not in started}
    return late | {source: epoch for source, epoch in reading.late.items() if source in started}


def planned_from_start(
    catalog: Catalog, state: State, epoch: int, planned: Callable[[Catalog], Planned]
) -> tuple[Catalog, Planned]:
    """Plan a catalog. Incomplete sources of new views begin at STARTING AT, if the views have it.

    `planned` raises `Incomplete` if rows are missing; `epoch` is the last committed one. If only later views might need
    the rows, the source is marked incomplete instead.
    """
    while True:
        try:
            return catalog, planned(catalog)
        except Incomplete as refused:
            if refused.is_needed:
                catalog = started(catalog, state, refused, epoch)
            else:
                catalog = catalog.with_incomplete(refused.source)


def started(catalog: Catalog, state: State, refused: Incomplete, epoch: int) -> Catalog:
    """Return the catalog with an incomplete source that begins at STARTING AT of the new views that read it.

    `epoch` is the last committed one. Raises `refused` if no new view has a STARTING AT for the source.
    """
    source = catalog.find(refused.source)
    new = [view for view in _new(catalog, state) if view.starting is not None]
    unsettled = [view for view in new if refused.source not in (*view.reading.epochs, *view.reading.times)]
    if not isinstance(source, Source) or not unsettled:
        raise refused
    for view in unsettled:
        catalog = catalog.with_reading(view.name, _starting(view, source, refused, epoch))
    return catalog


def _new(catalog: Catalog, state: State) -> list[View]:
    return [view for view in catalog.views if view.name not in state.changelogs]


def start_note(view: View) -> str | None:
    """Return a note about the sources of a query that are incomplete; None if all are complete."""
    starts = _own_starts(view)
    if not starts:
        return None
    listed = " and ".join(f"`{source}` begins at {start}" for source, start in starts.items())
    return f"the answer is not complete: {listed}"


def _starting(view: View, source: Source, refused: Incomplete, epoch: int) -> Reading:
    """Return how a view reads its sources if one of them begins at its STARTING AT."""
    reading, start = view.reading, str(view.starting)
    first = epoch + 1 if start == NOW else epoch_of(start)
    if first is None:
        if not clock_columns(source):
            raise Incomplete(
                f"`{source.name}` has no event time, so {_named(view)} cannot start at a time in it",
                detail=refused.detail,
                hint="STARTING AT NOW; or declare a WATERMARK on a TIMESTAMP or DATE column",
            )
        return replace(reading, times={**reading.times, source.name: micros_of(start)})
    if first > epoch + 1:
        raise NotCommitted(
            f"{_named(view)} would start at epoch {first}, which is not committed yet",
            detail=f"the last committed epoch is {epoch}",
            hint="STARTING AT NOW starts with the next one",
        )
    if source.kind == "changelog":
        raise Incomplete(
            f"changelog `{source.name}` cannot start at an epoch: it may delete rows from before",
            detail=refused.detail,
            hint="start at an event time, STARTING AT TIMESTAMP '…'; or keep its rows: RETAIN ALL",
        )
    return replace(reading, epochs={**reading.epochs, source.name: first - 1})


def _named(view: View) -> str:
    return "the query" if view.name == QUERY else f"view `{view.name}`"


def starts_of(catalog: Catalog, view: View) -> dict[str, str]:
    """Return where the incomplete sources of a view begin, including those of views that it reads."""
    result: dict[str, str] = {}
    for name in named_relations(view.query):
        below = catalog.find(name)
        if isinstance(below, View) and below.name != view.name:
            result |= starts_of(catalog, below)
    return result | _own_starts(view)


def _own_starts(view: View) -> dict[str, str]:
    result = {source: f"epoch {epoch + 1}" for source, epoch in view.reading.epochs.items()}
    return result | {source: str(_EPOCH + timedelta(microseconds=time)) for source, time in view.reading.times.items()}

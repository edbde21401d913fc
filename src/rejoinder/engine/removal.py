"""Definitions that are dropped and made again in one commit: their old state and identity must not come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rejoinder.engine.engine import Engine
from rejoinder.engine.planner import plan
from rejoinder.plan.catalog import Catalog

_CHANGED = ("state", "created", "attached", "sinks", "watermarks", "deliveries")


@contextmanager
def removed_first(engine: Engine, smaller: Catalog, *, is_needed: bool) -> Iterator[None]:
    """Take definitions out of an engine in memory only, for as long as it takes to define and commit what follows.

    If that fails the engine is as it was before.
    """
    if not is_needed:
        yield
        return
    before = {name: getattr(engine, name) for name in _CHANGED}
    try:
        _take_out(engine, smaller)
        yield
    except BaseException:
        for name, value in before.items():
            setattr(engine, name, value)
        raise


def _take_out(engine: Engine, smaller: Catalog) -> None:
    new = plan(smaller, engine.plan.program.statistics)
    views = new.dataflow.views
    # What is kept of a source that stays may fill what is defined next, whether the smaller catalog needs it or not.
    sources = {source.name for source in smaller.sources}
    needed = {a.id for a in new.dataflow.arrangements}
    needed |= {a.id for a in engine.dataflow.arrangements if a.relation in sources}
    state = engine.state
    engine.state = replace(
        state,
        arrangements={name: parts for name, parts in state.arrangements.items() if name in needed},
        changelogs={name: parts for name, parts in state.changelogs.items() if name in views},
    )
    engine.created = {name: epoch for name, epoch in engine.created.items() if name in views}
    # Rows that stay and how far their source is read belong together.
    engine.attached = {name: identity for name, identity in engine.attached.items() if name in sources}
    kept = {sink.name for sink in smaller.sinks}
    engine.sinks = {name: known for name, known in engine.sinks.items() if name in kept}
    engine.watermarks = engine.watermarks.keeping(sources, views)
    engine.deliveries = engine.deliveries.keeping(sources)

"""Definitions that are dropped and made again in one commit: their old state and identity must not come back."""

from __future__ import annotations

from dataclasses import replace

from rejoinder.engine.content import Content
from rejoinder.ir.catalog import Catalog
from rejoinder.planner import plan


def reduced(content: Content, smaller: Catalog) -> Content:
    """What is committed, without all that belongs to definitions that a smaller catalog does not have.

    The catalog, the plan and the positions stay: they say how what is left is read.
    """
    new = plan(smaller, content.plan.program.statistics)
    views = new.dataflow.views
    # What is kept of a source that stays may fill what is defined next, whether the smaller catalog needs it or not.
    sources = {source.name for source in smaller.sources}
    needed = {a.id for a in new.dataflow.arrangements}
    needed |= {a.id for a in content.plan.dataflow.arrangements if a.relation in sources}
    sinks = {sink.name for sink in smaller.sinks}
    state = content.state
    return replace(
        content,
        state=replace(
            state,
            arrangements={name: parts for name, parts in state.arrangements.items() if name in needed},
            changelogs={name: parts for name, parts in state.changelogs.items() if name in views},
        ),
        created={name: epoch for name, epoch in content.created.items() if name in views},
        # Rows that stay and how far their source is read belong together.
        attached={name: identity for name, identity in content.attached.items() if name in sources},
        sinks={name: known for name, known in content.sinks.items() if name in sinks},
        watermarks=content.watermarks.restricted_to(sources, views),
        deliveries=content.deliveries.keeping(sources),
    )

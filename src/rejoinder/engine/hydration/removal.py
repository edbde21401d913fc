"""Definitions that are dropped and created again in one commit: they must not keep their old state and identity."""

from __future__ import annotations

from dataclasses import replace

from rejoinder.engine.version import Version
from rejoinder.ir.catalog import Catalog
from rejoinder.ir.identities import SourceRows
from rejoinder.planner import plan


def reduced(version: Version, smaller: Catalog) -> Version:
    """Return the committed version without the state of definitions that a smaller catalog does not have.

    The catalog, the plan and the positions stay: they are necessary to read the remaining state.
    """
    new = plan(smaller, version.plan.program.statistics)
    views = new.dataflow.views
    # Arrangements of a source that stays may hydrate the next definition, even if the smaller catalog needs none.
    sources = {source.name for source in smaller.sources}
    needed = {a.id for a in new.dataflow.arrangements}
    needed |= {a.id for a in version.plan.dataflow.arrangements if a.relation in {SourceRows(name) for name in sources}}
    sinks = {sink.name for sink in smaller.sinks}
    state = version.state
    return replace(
        version,
        state=replace(
            state,
            arrangements={name: parts for name, parts in state.arrangements.items() if name in needed},
            changelogs={name: parts for name, parts in state.changelogs.items() if name in views},
        ),
        created={name: epoch for name, epoch in version.created.items() if name in views},
        # The rows and the position of a source belong together, so its identity stays with them.
        attached={name: identity for name, identity in version.attached.items() if name in sources},
        sinks={name: entry for name, entry in version.sinks.items() if name in sinks},
        watermarks=version.watermarks.restricted_to(sources, views),
        deliveries=version.deliveries.restricted_to(sources),
    )

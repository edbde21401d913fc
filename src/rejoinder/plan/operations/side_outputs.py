"""Notes: what a flow writes down of rows that came too late for a view, and of records that could not be read.

`<view>.late` and `<source>.rejected` are read like streams, by queries, views and sinks. Nobody defines them: they are
there with their owner, and go with it. A row is noted in the epoch in which it came, so what is made from notes changes
in that epoch too. Only a plan knows whether a view leaves late rows out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from rejoinder.connectors.registry import source_side
from rejoinder.errors import UnknownName
from rejoinder.ir.catalog import INTERNAL, LATE, LATE_SCHEMA, REJECTED, Catalog, Relation, Source, View
from rejoinder.plan.physical.fragments import Fragment, Rounds
from rejoinder.plan.physical.steps import Emit, OnTime
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program


def noted(catalog: Catalog, name: str) -> Source | None:
    """The notes of that name, as a stream; None if there are none."""
    owned, dot, what = name.rpartition(".")
    owner = catalog.find(owned)
    if isinstance(owner, View) and dot + what.lower() == LATE:
        return Source(owner.name + LATE, "stream", LATE_SCHEMA, format=INTERNAL)
    if isinstance(owner, Source) and dot + what.lower() == REJECTED and owner.rejects:
        return Source(owner.rejected, "stream", source_side(owner).rejected_schema, format=INTERNAL)
    return None


def readable(catalog: Catalog, name: str) -> Relation:
    """The relation or the notes of that name. Raises `UnknownName`, which says why there are none."""
    found = catalog.find(name) or noted(catalog, name)
    if found is not None:
        return found
    owned, dot, what = name.rpartition(".")
    if dot + what.lower() not in (LATE, REJECTED):
        return catalog.get(name)
    owner = catalog.get(owned)
    if isinstance(owner, View):
        raise UnknownName(
            f"`{owner.name}` is a view, and records are rejected by sources",
            detail=f"there is no `{name}`",
            hint=f"read {REJECTED} of a source of it; its late rows are in `{owner.name}{LATE}`",
        )
    if dot + what.lower() == LATE:
        raise UnknownName(
            f"`{owner.name}` is a {owner.kind}, and rows are late for views",
            detail=f"there is no `{name}`; a view that keeps every row has none that are late",
            hint=f"read {LATE} of a view with EMIT or bounded state; SHOW VIEWS shows how many late rows each has",
        )
    raise UnknownName(
        f"`{owner.name}` rejects no records",
        detail=f"there is no `{name}`; a record that cannot be read fails the epoch",
        hint="create it with OPTIONS (malformed 'divert'), or max_ahead for times in the far future",
    )


def takes_every_row(view: str) -> UnknownName:
    """Make the error for late rows of a view that leaves none out."""
    return UnknownName(
        f"view `{view}` takes every row and has no late rows",
        detail=f"there is no `{view}{LATE}`: only views with EMIT or with bounded state leave late rows out",
        hint=f"EXPLAIN {view} shows what it keeps; EMIT FINAL and EMIT WHEN WATERMARK PAST … leave late rows out",
    )


def refuse_missing(catalog: Catalog, program: Program, kept: Collection[str]) -> None:
    """Refuse views and sinks that read late rows of a view that leaves none out."""
    blocks = (block for made in program.relations.values() for block in made.blocks)
    read = [*(each.relation for block in blocks for each in block.inputs), *(sink.view for sink in catalog.sinks)]
    for name in read:
        if name.endswith(LATE) and name not in kept and name not in program.sources:
            raise takes_every_row(name.removesuffix(LATE))


def filter_late(
    rounds: Rounds,
    fragment: Fragment,
    name: str,
    times: tuple[tuple[str, Formula], ...],
    views: tuple[str, ...],
    policy: str,
    labels: tuple[tuple[str, str], ...] = (),
    *,
    keeps_nulls: bool = False,
) -> Fragment:
    """The rows of a fragment that are not late; the others become notes of the views that leave them out."""
    passed, late = f"{fragment.stream}/on-time", f"{fragment.stream}/late"
    rounds.add(fragment.round, OnTime(fragment.stream, passed, late, name, times, views, policy, labels, keeps_nulls))
    for view in views:
        rounds.add(fragment.round, Emit(late, view + LATE))
        rounds.notes.setdefault(view + LATE, []).append(Fragment(fragment.round, late))
    return replace(fragment, stream=passed)

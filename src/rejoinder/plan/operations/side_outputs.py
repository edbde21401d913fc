"""Side outputs: the late rows of a view, and the records of a source that could not be read.

`<view>.late` and `<source>.rejected` are read like streams, by queries, views and sinks. They are created and dropped
with their owner. A row is written in the epoch in which it came, so a view that reads a side output changes in that
epoch too. Only a plan knows whether a view leaves late rows out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from rejoinder.connectors.registry import source_side
from rejoinder.errors import UnknownName
from rejoinder.ir.catalog import INTERNAL, LATE_SCHEMA, Catalog, Relation, Source, View
from rejoinder.ir.identities import SideOutput, side_output
from rejoinder.plan.physical.fragments import Fragment, Rounds
from rejoinder.plan.physical.steps import Emit, OnTime
from rejoinder.watermarks.formula import Formula

if TYPE_CHECKING:
    from rejoinder.plan.rounds.program import Program


def find_side_output(catalog: Catalog, name: str) -> Source | None:
    """The side output of that name, as a stream; None if there is none."""
    named = side_output(name)
    owner = None if named is None else catalog.find(named.owner)
    if named is None or owner is None:
        return None
    side, schema = SideOutput(owner.name, named.output), LATE_SCHEMA
    if isinstance(owner, Source):
        if named.output != "rejected" or not owner.rejects:
            return None
        schema = source_side(owner).rejected_schema
    elif named.output != "late":
        return None
    return Source(str(side), "stream", schema, format=INTERNAL, side_output=side)


def readable(catalog: Catalog, name: str) -> Relation:
    """The relation or the side output of that name. Raises `UnknownName`, which says why there are none."""
    found = catalog.find(name) or find_side_output(catalog, name)
    if found is not None:
        return found
    named = side_output(name)
    if named is None:
        return catalog.get(name)
    owner = catalog.get(named.owner)
    if isinstance(owner, View):
        raise UnknownName(
            f"`{owner.name}` is a view, and records are rejected by sources",
            detail=f"there is no `{name}`",
            hint=f"read .rejected of a source of it; its late rows are in `{owner.name}.late`",
        )
    if named.output == "late":
        raise UnknownName(
            f"`{owner.name}` is a {owner.kind}, and rows are late for views",
            detail=f"there is no `{name}`; a view that keeps every row has none that are late",
            hint="read .late of a view with EMIT or bounded state; SHOW VIEWS shows how many late rows each has",
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
        detail=f"there is no `{view}.late`: only views with EMIT or with bounded state leave late rows out",
        hint=f"EXPLAIN {view} shows what it keeps; EMIT FINAL and EMIT WHEN WATERMARK PAST … leave late rows out",
    )


def refuse_missing(catalog: Catalog, program: Program, kept: Collection[str]) -> None:
    """Refuse views and sinks that read late rows of a view that leaves none out."""
    blocks = (block for made in program.relations.values() for block in made.blocks)
    read = [
        *(each.relation for block in blocks for each in block.inputs),
        *(side_output(s.view) for s in catalog.sinks),
    ]
    for side in read:
        if isinstance(side, SideOutput) and side.output == "late" and str(side) not in kept:
            raise takes_every_row(side.owner)


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
    """The rows of a fragment that are not late; the others go to the side outputs of the views."""
    passed, late = f"{fragment.stream}/on-time", f"{fragment.stream}/late"
    rounds.add(fragment.round, OnTime(fragment.stream, passed, late, name, times, views, policy, labels, keeps_nulls))
    for view in views:
        side = SideOutput(view, "late")
        rounds.add(fragment.round, Emit(late, str(side)))
        rounds.side_outputs.setdefault(side, []).append(Fragment(fragment.round, late))
    return replace(fragment, stream=passed)

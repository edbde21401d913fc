"""EMIT FINAL: from when on a row can change no more.

- A pair of rows of append-only inputs is final at once. A row without a partner is final when no partner can come any
  more: when the watermark of the other side is past the last time that the bounds allow.
- Of any other query, a row is final when the frontier of one of its times is past that time: no change comes there.
  A row of a FULL join has a time of the left or of the right side, and waits for the first that it has.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from rejoinder.errors import Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.ir.expression import Expression, column, conjunction
from rejoinder.ir.identities import source_of
from rejoinder.ir.logical import EMIT_AT, Emission, Enrich, Filter, Join, Node, Project, Query, Scan, after
from rejoinder.ir.monotone import Step, inverse, simplified
from rejoinder.ir.nodes import Call, Column, Literal
from rejoinder.ir.operators import coalesce, is_not_null, is_null, least, when
from rejoinder.ir.scalar_operation import ScalarOperation
from rejoinder.plan.blocks.normal_form import Block, Normalised
from rejoinder.plan.join.block_bounds import Steps, slack_of, tightest
from rejoinder.plan.time.bound_hints import condition_edit
from rejoinder.plan.time.frontier import Frontiers

LAST_PARTNER = "the last time at which a partner can come"
OUTER = ("left", "full", "anti", "full anti")
Clock = tuple[str, str]
"""A source and its column, whose watermark rows wait for."""


@dataclass(frozen=True)
class _Time:
    """An event time of a side: whose watermark it follows, the type of that column, and the steps from it."""

    clock: Clock
    kind: pa.DataType
    steps: Steps = ()


Times = Mapping[str, _Time]


def with_finality(query: Query, sources: Mapping[str, Source], growing: Container[str] = ()) -> Query | None:
    """The query with the time of release of its rows; without one if all of them are final at once.

    None if it is not one outer join at most, on top of inner ones, of streams. `growing`: views that only grow.
    """
    if only_grows(query.root, sources, growing):
        return replace(query, emission=None)
    joins = _plain_joins(query.root, sources, ())
    if joins is None or any(inner.kind in OUTER for inner in joins[1:]):
        return None
    join = joins[0]
    left, right = _event_times(join.left, sources), _event_times(join.right, sources)
    theirs, clock, waiting = _wait(join, join.left, left, right)
    emission = Emission("final", release=waiting, clocks=(clock,))
    if join.kind == "anti":
        return replace(query, emission=emission)
    missing = is_null(Column(theirs, right[theirs].kind))
    if join.kind == "left":
        release = Expression(when(missing, waiting.node), LAST_PARTNER)
        return replace(query, emission=replace(emission, release=release))
    ours, back, lonely = _wait(join, join.right, right, left)
    alone = when(is_null(Column(ours, left[ours].kind)), lonely.node)
    release = Expression(when(missing, waiting.node, alone), LAST_PARTNER)
    gate = Expression(when(missing, Literal(0, pa.int32()), Literal(1, pa.int32())))
    return replace(query, emission=replace(emission, release=release, gate=gate, clocks=(clock, back)))


def only_grows(node: Node, sources: Mapping[str, Source], growing: Container[str]) -> bool:
    """Whether rows of a tree are never taken back: it has inner and semi joins alone, of what only grows."""
    joins = _plain_joins(node, sources, growing)
    return joins is not None and not any(join.kind in OUTER for join in joins)


def _plain_joins(node: Node, sources: Mapping[str, Source], growing: Container[str]) -> list[Join] | None:
    """The joins of a query, the uppermost first, if it has nothing else and reads streams, or views that grow."""
    match node:
        case Filter() | Project() | Enrich():
            return _plain_joins(node.input, sources, growing)
        case Join():
            left, right = (_plain_joins(side, sources, growing) for side in (node.left, node.right))
            return None if left is None or right is None else [node, *left, *right]
        case Scan():
            known = sources.get(source_of(node.relation))
            is_stream = known is not None and known.kind == "stream"
            return [] if is_stream or source_of(node.relation) in growing else None
        case _:
            return None


def final_by_time(normal: Normalised, frontiers: Frontiers) -> Normalised:
    """The normal form with a release: a time of a row below which nothing changes any more, so that the row is final.

    Raises `Unsupported` if no time is known of every row.
    """
    block = normal.block
    shown = {i for _, e in block.outputs for i in e.columns}
    times = [
        column(i, each.schema.field(name).type)
        for each in block.inputs
        for i, name in each.columns
        if each.mode == "inner" and frontiers.is_final(block, i)
    ]
    if not times:
        either = _either(block, frontiers, shown)
        if either:
            return _with_release(normal, tuple(map(after, either)))
        raise Unsupported(
            "EMIT FINAL needs to know when a row is final",
            detail="it is for joins of streams with bounds in time, for groups by a window, and where all rows "
            "have an event time",
            hint="GROUP BY a window such as TUMBLE(ts, INTERVAL 1 MINUTE), or say it: EMIT WHEN WATERMARK PAST column",
        )
    return _with_release(normal, (after(min(times, key=lambda time: time.columns[0] not in shown)),))


def _with_release(normal: Normalised, times: tuple[Expression, ...]) -> Normalised:
    """The normal form with a release: the first of these times that a row has."""
    block, release = normal.block, times[0]
    if len(times) > 1:
        text = f"coalesce({', '.join(time.text for time in times)})"
        release = Expression(coalesce([time.node for time in times]), text)
    emission = Emission("final", release=release, times=times)
    outputs = (*block.outputs, (EMIT_AT, release))
    return replace(normal, block=replace(block, outputs=outputs), emission=emission)


def _either(block: Block, frontiers: Frontiers, shown: Container[str]) -> list[Expression]:
    """Times of one type, of which every row has at least one: of a FULL join, one of each side."""
    for each in block.inputs:
        if each.mode != "inner":
            continue
        ids = {name: i for i, name in each.columns if frontiers.is_timed(block, i)}
        for kind in dict.fromkeys(each.schema.field(name).type for name in ids):
            names = [name for name in ids if each.schema.field(name).type == kind]
            names.sort(key=lambda name: ids[name] not in shown)
            chosen = frontiers.covering(each.relation, names)
            if chosen:
                return [column(ids[name], kind) for name in chosen]
    return []


def _event_times(node: Node, sources: Mapping[str, Source]) -> Times:
    """The event times of a side by identifier: columns with a watermark, and what rises with one."""
    match node:
        case Scan():
            name = source_of(node.relation)
            known = sources[name].watermarks if name in sources else {}
            return {i: _Time((name, n), node.schema.field(n).type) for i, n in node.columns if n in known}
        case Filter() | Enrich():
            return _event_times(node.input, sources)
        case Project():
            inner = _event_times(node.input, sources)
            rising = [(i, e.monotone) for i, e in node.outputs if e.monotone is not None and not e.repeats]
            made = [(i, inner[r.column], r.steps) for i, r in rising if r.column in inner]
            return {i: replace(time, steps=simplified((*time.steps, *steps))) for i, time, steps in made}
        case Join():
            return {**_event_times(node.left, sources), **_event_times(node.right, sources)}
        case _:
            return {}


def _wait(join: Join, side: Node, kept: Times, coming: Times) -> tuple[str, Clock, Expression]:
    """How long a row of one side waits for a partner: a column of the other, its watermark, and the release.

    With bounds on several watermarks it waits for that of the tightest, rather one on an event time of its own.
    """
    bounds, types = tightest(join.predicates), column_types(side)
    steps = {
        (later, earlier): simplified((*coming[earlier].steps, *found))
        for (later, earlier), found in bounds.items()
        if later in types and earlier in coming
    }
    if not steps:
        raise _unbounded(join, kept, coming, back=any(i in coming and j in kept for i, j in bounds))
    slacks = {pair: slack_of(found) for pair, found in steps.items()}
    _, theirs = min(slacks, key=lambda pair: (pair[0] not in kept, slacks[pair] is None, slacks[pair] or 0, pair))
    clock = coming[theirs].clock
    releases = [_least(i, types[i], found) for (i, other), found in steps.items() if coming[other].clock == clock]
    return theirs, clock, _first(join, types, releases)


def _unbounded(join: Join, kept: Times, coming: Times, *, back: bool) -> Unsupported:
    rows, changes = ([(".".join(time.clock), time.kind) for time in each.values()] for each in (kept, coming))
    marked = {time.clock[0] for time in (*kept.values(), *coming.values())}
    unmarked = ", ".join(f"`{name}`" for name in sorted(_relations(join) - marked))
    edit = f"declare WATERMARK on a time of each side: there is none on {unmarked}"
    return Unsupported(
        "EMIT FINAL needs a bound in time for each side of the join",
        detail=f"event-time columns: {', '.join(name for name, _ in (*rows, *changes)) or 'none'}; no condition says "
        "how long after a row its last partner can come",
        hint=condition_edit(rows, changes, both=not back) if rows and changes else edit,
    )


def _relations(node: Node) -> set[str]:
    """The relations that a tree of joins reads."""
    match node:
        case Scan():
            return {source_of(node.relation)}
        case Filter() | Project() | Enrich():
            return _relations(node.input)
        case Join():
            return _relations(node.left) | _relations(node.right)
        case _:
            return set()


def _first(join: Join, types: Mapping[str, pa.DataType], releases: list[Expression]) -> Expression:
    """From when on a row without a partner is final: when the first of its bounds leaves it behind.

    At once (NULL) if conditions on it alone rule a partner out, or a time that is compared is NULL. Conditions that can
    fail are left out: they are asked of pairs, and a row that no partner meets must not fail.
    """
    asked = [p.expression for p in join.predicates if not p.expression.can_fail]
    guards = [each for each in asked if each.columns and types.keys() >= {*each.columns}]
    compared = dict.fromkeys(i for each in releases for i in each.columns)
    guards += [Expression(is_not_null(Column(i, types[i])), f"{i} IS NOT NULL") for i in compared]
    guard = conjunction(guards)
    assert guard is not None, "there is a release"
    return Expression(when(guard.node, least([each.node for each in releases])), LAST_PARTNER)


def column_types(node: Node) -> dict[str, pa.DataType]:
    """The columns of a tree of joins: their types by identifier."""
    match node:
        case Scan():
            return {i: node.schema.field(name).type for i, name in node.columns}
        case Filter():
            return column_types(node.input)
        case Project():
            return {i: e.type for i, e in node.outputs}
        case Enrich():
            return {**column_types(node.input), **{i: kind for i, _, kind in node.answers}}
        case Join():
            return {**column_types(node.left), **column_types(node.right)}
        case _:
            return {}


def _least(i: str, kind: pa.DataType, steps: Steps) -> Expression:
    """The least time of the other side with which a bound leaves column `i` behind, as a number in its unit.

    It is a time: not so far away that it would count as none.
    """
    options = tuple(n for step in simplified((Step(1), *inverse(steps))) for n in (step.plus, step.width, step.unit))
    return Expression(Call(ScalarOperation("time_bound", options), (Column(i, kind),), pa.int64()))

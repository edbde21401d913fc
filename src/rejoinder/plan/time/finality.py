"""EMIT FINAL: when a row cannot change any more.

- A pair of rows of append-only inputs is final at once. A row without a match is final when no match can arrive any
  more: when the watermark of the other side has passed the last time that the bounds allow.
- In any other query, a row is final when the frontier of one of its times has passed that time. A row of a FULL join
  has a time of the left or of the right side; the first that is not NULL counts.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from rejoinder.errors import Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.ir.expressions.expression import Expression, column, conjunction
from rejoinder.ir.expressions.monotone import Step, inverse, simplified
from rejoinder.ir.expressions.nodes import Call, Column, Literal
from rejoinder.ir.expressions.operators import coalesce, is_not_null, is_null, least, when
from rejoinder.ir.expressions.scalar_operation import ScalarOperation
from rejoinder.ir.identities import source_of
from rejoinder.ir.logical import EMIT_AT, Emission, Enrich, Filter, Join, Node, Project, Query, Scan, after
from rejoinder.plan.blocks.normal_form import Block, Normalized
from rejoinder.plan.join.block_bounds import Steps, slack_of, tightest
from rejoinder.plan.time.bound_hints import condition_edit
from rejoinder.plan.time.frontier import Frontiers

LAST_MATCH = "the last time at which a match can arrive"
OUTER = ("left", "full", "anti", "full anti")
Clock = tuple[str, str]
"""A source and its column whose watermark decides."""


@dataclass(frozen=True)
class _Time:
    """An event time of a side: its watermark, the type of that column, and the monotone function of it."""

    clock: Clock
    kind: pa.DataType
    steps: Steps = ()


Times = Mapping[str, _Time]


def with_finality(query: Query, sources: Mapping[str, Source], growing: Container[str] = ()) -> Query | None:
    """Add the emit time of rows to a query; none if all rows are final at once. `growing` are append-only views.

    Returns None unless the query is at most one outer join over inner joins of streams.
    """
    if only_grows(query.root, sources, growing):
        return replace(query, emission=None)
    joins = _plain_joins(query.root, sources, ())
    if joins is None or any(inner.kind in OUTER for inner in joins[1:]):
        return None
    join = joins[0]
    left, right = _event_times(join.left, sources), _event_times(join.right, sources)
    theirs, clock, waiting = _wait(join, join.left, left, right)
    emission = Emission("final", emit_time=waiting, clocks=(clock,))
    if join.kind == "anti":
        return replace(query, emission=emission)
    missing = is_null(Column(theirs, right[theirs].kind))
    if join.kind == "left":
        emit_time = Expression(when(missing, waiting.node), LAST_MATCH)
        return replace(query, emission=replace(emission, emit_time=emit_time))
    ours, back, lonely = _wait(join, join.right, right, left)
    alone = when(is_null(Column(ours, left[ours].kind)), lonely.node)
    emit_time = Expression(when(missing, waiting.node, alone), LAST_MATCH)
    gate = Expression(when(missing, Literal(0, pa.int32()), Literal(1, pa.int32())))
    return replace(query, emission=replace(emission, emit_time=emit_time, gate=gate, clocks=(clock, back)))


def only_grows(node: Node, sources: Mapping[str, Source], growing: Container[str]) -> bool:
    """Return whether rows of a tree are never retracted: it has only inner and semi joins of append-only relations."""
    joins = _plain_joins(node, sources, growing)
    return joins is not None and not any(join.kind in OUTER for join in joins)


def _plain_joins(node: Node, sources: Mapping[str, Source], growing: Container[str]) -> list[Join] | None:
    """Return the joins of a query, top first, if it has nothing else and reads streams or append-only views."""
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


def final_by_time(normal: Normalized, frontiers: Frontiers) -> Normalized:
    """Add an emit time to the normal form: a time of a row, so that the row is final once its frontier has passed it.

    Raises `Unsupported` if there is no such time in every row.
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
            return _with_emit_time(normal, tuple(map(after, either)))
        raise Unsupported(
            "EMIT FINAL needs to know when a row is final",
            detail="it supports joins of streams with bounds in time, groups by a window, and queries in which all "
            "rows have an event time",
            hint="GROUP BY a window such as TUMBLE(ts, INTERVAL 1 MINUTE), or use EMIT WHEN WATERMARK PAST column",
        )
    return _with_emit_time(normal, (after(min(times, key=lambda time: time.columns[0] not in shown)),))


def _with_emit_time(normal: Normalized, times: tuple[Expression, ...]) -> Normalized:
    """Add an emit time to the normal form: the first of these times that is not NULL in a row."""
    block, emit_time = normal.block, times[0]
    if len(times) > 1:
        text = f"coalesce({', '.join(time.text for time in times)})"
        emit_time = Expression(coalesce([time.node for time in times]), text)
    emission = Emission("final", emit_time=emit_time, times=times)
    outputs = (*block.outputs, (EMIT_AT, emit_time))
    return replace(normal, block=replace(block, outputs=outputs), emission=emission)


def _either(block: Block, frontiers: Frontiers, shown: Container[str]) -> list[Expression]:
    """Return times of one type of which every row has at least one: in a FULL join, one of each side."""
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
    """Return the event times of a side by column id: columns with a watermark, and monotone expressions of them."""
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
    """Return when a row without a match is final: a column of the other side, its watermark, and the emit time.

    With bounds on several watermarks, that of the tightest bound decides; bounds on an event time of the row go first.
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
    emit_times = [_least(i, types[i], found) for (i, other), found in steps.items() if coming[other].clock == clock]
    return theirs, clock, _first(join, types, emit_times)


def _unbounded(join: Join, kept: Times, coming: Times, *, back: bool) -> Unsupported:
    rows, changes = ([(".".join(time.clock), time.kind) for time in each.values()] for each in (kept, coming))
    marked = {time.clock[0] for time in (*kept.values(), *coming.values())}
    unmarked = ", ".join(f"`{name}`" for name in sorted(_relations(join) - marked))
    edit = f"declare WATERMARK on a time of each side: there is none on {unmarked}"
    return Unsupported(
        "EMIT FINAL needs a bound in time for each side of the join",
        detail=f"event-time columns: {', '.join(name for name, _ in (*rows, *changes)) or 'none'}; no condition says "
        "how long after a row its last match can arrive",
        hint=condition_edit(rows, changes, both=not back) if rows and changes else edit,
    )


def _relations(node: Node) -> set[str]:
    """Return the relations that a tree of joins reads."""
    match node:
        case Scan():
            return {source_of(node.relation)}
        case Filter() | Project() | Enrich():
            return _relations(node.input)
        case Join():
            return _relations(node.left) | _relations(node.right)
        case _:
            return set()


def _first(join: Join, types: Mapping[str, pa.DataType], emit_times: list[Expression]) -> Expression:
    """Return when a row without a match is final: when the first of its bounds has passed it.

    NULL means at once: conditions on the row alone exclude a match, or a time that is compared is NULL. Conditions that
    can fail are ignored: they are about pairs, and must not fail on a row without a match.
    """
    asked = [p.expression for p in join.predicates if not p.expression.can_fail]
    guards = [each for each in asked if each.columns and types.keys() >= {*each.columns}]
    compared = dict.fromkeys(i for each in emit_times for i in each.columns)
    guards += [Expression(is_not_null(Column(i, types[i])), f"{i} IS NOT NULL") for i in compared]
    guard = conjunction(guards)
    assert guard is not None, "there is an emit time"
    return Expression(when(guard.node, least([each.node for each in emit_times])), LAST_MATCH)


def column_types(node: Node) -> dict[str, pa.DataType]:
    """Return the types of the columns of a tree of joins, by column id."""
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
    """Return the smallest time of the other side at which a bound has passed column `i`, as a number in its unit.

    The result is clipped, so that it is never the value that means "no time".
    """
    options = tuple(n for step in simplified((Step(1), *inverse(steps))) for n in (step.plus, step.width, step.unit))
    return Expression(Call(ScalarOperation("time_bound", options), (Column(i, kind),), pa.int64()))

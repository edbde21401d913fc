"""EMIT FINAL: from when on a row can change no more.

- A pair of rows of append-only inputs is final at once. A row without a partner is final when no partner can come any
  more: when the watermark of the other side is past the last time that the bounds allow.
- Of any other query, a row is final when the frontier of one of its times is past that time: no change comes there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from rejoinder.errors import Unsupported
from rejoinder.kernels.expression import Expression, column, conjunction, quoted
from rejoinder.kernels.rising import Step, inverse, shift, simplified
from rejoinder.plan.bounds import Steps, slack_of, tightest
from rejoinder.plan.catalog import Source
from rejoinder.plan.frontier import Frontiers
from rejoinder.plan.logical import RELEASE, Emission, Enrich, Filter, Join, Node, Project, Query, Scan, after
from rejoinder.plan.missing import condition_edit
from rejoinder.plan.normal import Normalised

LAST_PARTNER = "the last time at which a partner can come"
OUTER = ("left", "full", "anti", "full anti")
Times = Mapping[str, tuple[str, str, pa.DataType]]


def with_finality(query: Query, sources: Mapping[str, Source]) -> Query | None:
    """The query with the time of release of its rows; without one if all of them are final at once.

    None if it is not one outer join at most, on top of inner ones, of streams.
    """
    joins = _plain_joins(query.root, sources)
    if joins is None or any(inner.kind in OUTER for inner in joins[1:]):
        return None
    join = joins[0] if joins and joins[0].kind in OUTER else None
    if join is None:
        return replace(query, emission=None)
    left, right = _event_times(join.left, sources), _event_times(join.right, sources)
    emission = Emission("final")
    ours, theirs, steps = _bound(join, left, right)
    kinds = left[ours][2], right[theirs][2]
    waiting = _waiting(join, join.left, ours, kinds, steps)
    clocks = (right[theirs][:2],)
    if join.kind == "anti":
        return replace(query, emission=replace(emission, release=waiting, clocks=clocks))
    missing = f"{quoted(theirs)} IS NULL"
    if join.kind == "left":
        release = _case(f"CASE WHEN {missing} THEN {waiting.sql} END", waiting.type, theirs, *waiting.columns)
        return replace(query, emission=replace(emission, release=release, clocks=clocks))
    one, other, back = _bound(join, right, left)
    lonely = _waiting(join, join.right, one, (right[one][2], left[other][2]), back)
    release = _case(
        f"CASE WHEN {missing} THEN {waiting.sql} WHEN {quoted(other)} IS NULL THEN {lonely.sql} END",
        waiting.type,
        *(theirs, other, *waiting.columns, *lonely.columns),
    )
    lock = _case(f"CASE WHEN {missing} THEN 0 ELSE 1 END", pa.int32(), theirs)
    return replace(query, emission=replace(emission, release=release, lock=lock, clocks=(*clocks, left[other][:2])))


def _plain_joins(node: Node, sources: Mapping[str, Source]) -> list[Join] | None:
    """The joins of a query, the uppermost first, if it has nothing else and reads streams."""
    match node:
        case Filter() | Project() | Enrich():
            return _plain_joins(node.input, sources)
        case Join():
            left, right = _plain_joins(node.left, sources), _plain_joins(node.right, sources)
            return None if left is None or right is None else [node, *left, *right]
        case Scan():
            known = sources.get(node.relation)
            return [] if known is not None and known.kind == "stream" else None
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
        raise Unsupported(
            "EMIT FINAL needs to know when a row is final",
            detail="it is offered for joins of streams with bounds in time, for groups by a window, and where all rows "
            "have an event time",
            hint="GROUP BY a window such as TUMBLE(ts, INTERVAL 1 MINUTE), or say it: EMIT WHEN WATERMARK PAST column",
        )
    release = after(min(times, key=lambda time: time.columns[0] not in shown))
    outputs = (*block.outputs, (RELEASE, release))
    return replace(normal, block=replace(block, outputs=outputs), emission=Emission("final", release=release))


def _event_times(node: Node, sources: Mapping[str, Source]) -> Times:
    """The event-time columns of a side: source, column and type by identifier."""
    match node:
        case Scan():
            known = sources[node.relation].watermarks if node.relation in sources else {}
            return {i: (node.relation, n, node.schema.field(n).type) for i, n in node.columns if n in known}
        case Filter() | Enrich():
            return _event_times(node.input, sources)
        case Project():
            inner = _event_times(node.input, sources)
            return {i: inner[e.columns[0]] for i, e in node.outputs if e.is_column and e.columns[0] in inner}
        case Join():
            return {**_event_times(node.left, sources), **_event_times(node.right, sources)}
        case _:
            return {}


def _bound(join: Join, kept: Times, coming: Times) -> tuple[str, str, Steps]:
    """The bound that says how long a row of one side waits for one of the other: the tightest there is."""
    bounds = tightest(join.predicates)
    found = [
        (slack is None, slack or 0, later, earlier)
        for later, earlier in bounds
        if later in kept and earlier in coming
        for slack in [slack_of(bounds[later, earlier])]
    ]
    if found:
        *_, later, earlier = min(found)
        return later, earlier, bounds[later, earlier]
    rows, changes = ([(f"{source}.{name}", kind) for source, name, kind in each.values()] for each in (kept, coming))
    unmarked = sorted(_relations(join) - {source for source, _, _ in (*kept.values(), *coming.values())})
    edit = f"declare WATERMARK on a time of each side: there is none on {', '.join(f'`{name}`' for name in unmarked)}"
    back = any(later in coming and earlier in kept for later, earlier in bounds)
    raise Unsupported(
        "EMIT FINAL needs a bound in time for each side of the join",
        detail=f"event-time columns: {', '.join(name for name, _ in (*rows, *changes)) or 'none'}; no condition says "
        "how long after a row its last partner can come",
        hint=condition_edit(rows, changes, both=not back) if rows and changes else edit,
    )


def _relations(node: Node) -> set[str]:
    """The relations that a tree of joins reads."""
    match node:
        case Scan():
            return {node.relation}
        case Filter() | Project() | Enrich():
            return _relations(node.input)
        case Join():
            return _relations(node.left) | _relations(node.right)
        case _:
            return set()


def _waiting(join: Join, side: Node, i: str, kinds: tuple[pa.DataType, pa.DataType], steps: Steps) -> Expression:
    """From when on a row without a partner is final: at once (NULL) if conditions on it alone rule one out.

    That is the least time of the other side with which the bound leaves the row behind. `kinds` are the types of the
    row's time and of the other side's. If they differ, the release is a number that counts in the latter's unit.
    """
    own = identifiers(side)
    guards = [p.expression for p in join.predicates if p.expression.columns and set(p.expression.columns) <= own]
    slack, kind = slack_of(steps), kinds[0] if kinds[0] == kinds[1] else pa.int64()
    moved = simplified((Step(1), *inverse(steps))) if slack is None else shift(slack + 1)
    release = _later(i, kind, slack + 1) if slack is not None and kind == kinds[0] else _counted(i, kinds[0], moved)
    guard = conjunction(guards)
    if guard is None:
        return release
    return _case(f"CASE WHEN {guard.sql} THEN {release.sql} END", kind, i, *guard.columns)


def identifiers(node: Node) -> set[str]:
    """The identifiers of a tree's columns."""
    match node:
        case Scan():
            return {i for i, _ in node.columns}
        case Filter():
            return identifiers(node.input)
        case Project():
            return {i for i, _ in node.outputs}
        case Enrich():
            return {i for i, _ in node.arguments} | {i for i, _, _ in node.answers}
        case Join():
            return identifiers(node.left) | identifiers(node.right)
        case _:
            return set()


def _later(i: str, kind: pa.DataType, by: int) -> Expression:
    """A time moved by a constant of its own unit."""
    moved = f"to_microseconds({by})" if pa.types.is_timestamp(kind) else str(by)
    return replace(column(i, kind), sql=f"({quoted(i)} + {moved})")


def _counted(i: str, kind: pa.DataType, steps: Steps) -> Expression:
    """A time as a number, sent through steps."""
    sql = f"CAST({quoted(i)} AS BIGINT)"
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        sql = f"epoch_us({quoted(i)})" if pa.types.is_timestamp(kind) else f"({quoted(i)} - DATE '1970-01-01')"
    for step in steps:
        moved = f"({sql} + {step.plus})"
        # DuckDB's // goes towards zero: take the rest away before
        sql = f"(({moved} - ({moved} % {step.width} + {step.width}) % {step.width}) // {step.width} * {step.unit})"
    return Expression(sql, pa.int64(), (i,))


def _case(sql: str, kind: pa.DataType, *columns: str) -> Expression:
    return Expression(sql, kind, tuple(dict.fromkeys(columns)), text=LAST_PARTNER)

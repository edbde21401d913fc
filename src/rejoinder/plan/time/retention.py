"""Retention: when rows of an arrangement expire, and which views therefore read their sources without late rows.

An arrangement is shared. A row expires when no user needs it any more. Each user has bounds on time columns; the first
bound that passes a row is enough. A user without bounds keeps all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from rejoinder.errors import Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.nodes import Or
from rejoinder.ir.identities import RelationId, all_rows
from rejoinder.plan.blocks.normal_form import Block, Derived, Normalized
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.retention_bound import Retention, RetentionBound
from rejoinder.plan.time.bound_hints import missing_edit, named
from rejoinder.plan.time.frontier import Frontiers
from rejoinder.watermarks.formula import Watermark, least

Bounds = tuple[RetentionBound, ...]
"""The bounds of one use: a row is no longer needed once one of them has passed it."""

_DAY = 86_400_000_000

Uses = Sequence[Bounds]
"""The uses of one user: it needs a row as long as one use does."""


class Retentions:
    """Collects which rows each user of an arrangement needs."""

    def __init__(self, frontiers: Frontiers) -> None:
        self.frontiers = frontiers
        self._uses: dict[str, list[Bounds]] = {}
        self._conditions: dict[str, dict[str, Expression | None]] = {}

    def add_user(self, arrangement: Arrangement, uses: Uses | None, condition: Expression | None = None) -> None:
        """Add a user with the bounds of each of its uses; None: it may need any row.

        It needs only rows that satisfy the `condition` on columns of the arrangement; None: all.
        """
        self._uses.setdefault(arrangement.id, []).extend(uses or [()])
        self._conditions.setdefault(arrangement.id, {})["" if condition is None else condition.key] = condition

    def for_lookup(self, block: Block, start: int, at: int) -> Uses:
        """Return the bounds of rows of input `at` that changes of input `start` look up."""
        limits = [(i, name, self.frontiers.limit(block, start, i)) for i, name in block.inputs[at].columns]
        both, has_time = (start, at), self.frontiers.has_time
        return [tuple(RetentionBound(name, below, not has_time(block, both, i)) for i, name, below in limits if below)]

    def for_key(self, block: Block, at: int) -> Uses:
        """Return the bounds of rows of input `at` whose keys its own changes test."""
        ids, has_time = {name: i for i, name in block.inputs[at].columns}, self.frontiers.has_time
        return [
            tuple(RetentionBound(name, below, not has_time(block, (at,), ids[name])) for name, below in way.items())
            for way in self.frontiers.key_frontier(block, at)
        ]

    def for_relation(self, relation: RelationId, names: list[str]) -> Uses:
        """Return the bounds of a relation that is kept as long as it can change."""
        limits = {name: self.frontiers.of(relation, name) for name in names}
        is_known = self.frontiers.is_known
        return [tuple(RetentionBound(n, below, not is_known(relation, n)) for n, below in limits.items() if below)]

    def for_input(self, derived: Derived) -> Uses:
        """Return the bounds of the state of a derived relation's operation."""
        operation, frontiers = derived.operation, self.frontiers
        names = _finest(derived, operation.expiry_columns(derived))
        return [
            tuple(
                RetentionBound(name, below, not operation.is_never_null(frontiers, derived, name))
                for name, below in way.items()
            )
            for way in operation.expiry(frontiers, derived, names)
        ]

    def of(self, arrangement: Arrangement) -> Retention | None:
        """Return when rows of an arrangement expire; None: never."""
        uses = self._uses.get(arrangement.id, [()])
        if not all(uses):
            return None
        condition = self._condition(arrangement)
        parts = () if condition is None else tuple(sorted(self._conditions[arrangement.id]))
        return Retention(_together(uses), condition, parts)

    def _condition(self, arrangement: Arrangement) -> Expression | None:
        """Return the condition of rows that some user needs; None: all. A condition that can fail keeps all rows."""
        asked = [condition for _, condition in sorted(self._conditions.get(arrangement.id, {}).items())]
        known = [condition for condition in asked if condition is not None and not condition.can_fail]
        if not known or len(known) < len(asked):
            return None
        if len(known) == 1:
            return known[0]
        text = " OR ".join(f"({condition.text})" for condition in known)
        return Expression(Or(condition.node for condition in known), text)


def _finest(derived: Derived, names: Sequence[str]) -> list[str]:
    """Of columns that are monotone in the same one, such as both ends of a window, return the most precise."""
    widths: dict[tuple[str | None, ...], list[tuple[float, str]]] = {}
    for name in names:
        made = [dict(block.outputs)[name].monotone for block in derived.blocks]
        spans = [None if rising is None else rising.span for rising in made]
        width = max(math.inf if span is None else span[1] - span[0] for span in spans)
        widths.setdefault(tuple(None if rising is None else rising.column for rising in made), []).append((width, name))
    return [min(same, key=lambda each: each[0])[1] for same in widths.values()]


def _together(uses: Sequence[Bounds]) -> tuple[Bounds, ...]:
    """Combine the bounds of users: those with a single bound on the same column become one.

    A user that has all bounds of another one adds nothing: it needs no row that the other does not need.
    """
    alone: dict[str, list[RetentionBound]] = {}
    for limits in uses:
        if len(limits) == 1:
            alone.setdefault(limits[0].column, []).append(limits[0])
    combined: list[Bounds] = [
        (RetentionBound(name, least([limit.below for limit in limits]), any(limit.keeps_nulls for limit in limits)),)
        for name, limits in alone.items()
    ]
    combined += dict.fromkeys(limits for limits in uses if len(limits) > 1)
    return tuple(limits for limits in combined if not any(set(other) < set(limits) for other in combined))


def is_timed(normal: Normalized, sources: Mapping[str, Source], relations: Mapping[RelationId, Derived]) -> bool:
    """Return whether a view has state, and all of it is bounded in time if late rows are left out."""
    kept = list(_kept(normal, sources, relations))
    return bool(kept) and all(is_bounded for _, _, is_bounded in kept)


def refuse_unbounded(
    normal: Normalized, sources: Mapping[str, Source], relations: Mapping[RelationId, Derived]
) -> None:
    """Raise `Unsupported` if a view would keep rows for ever; the error names the rows and the missing condition."""
    kept = list(_kept(normal, sources, relations))
    for rows, changes, is_bounded in kept:
        if not is_bounded:
            edit = missing_edit(rows, changes, sources, normal.derived, both=(changes, rows, False) in kept)
            raise _kept_for_ever(rows, changes, edit)
    if not kept:
        raise Unsupported(
            "EMIT FINAL of a query without state is not supported",
            detail="its rows are final when they arrive",
            hint="remove EMIT FINAL",
        )


def refuse_unfinished(
    normal: Normalized, sources: Mapping[str, Source], relations: Mapping[RelationId, Derived]
) -> None:
    """Raise `Unsupported` for EMIT FINAL of groups by a window if a join below can change them after the window.

    Groups of versions are supported: they are emitted when all watermarks have passed.
    """
    if not any(made.operation.changes_at_any_time for made in normal.derived.values()):
        for rows, changes, is_bounded in _kept(normal, sources, relations):
            if not is_bounded and rows != changes:
                raise Unsupported(
                    f"a row of {named(changes)} can change groups of any window, so that none is ever final",
                    detail=f"no condition says how far back changes of {named(changes)} reach among rows of "
                    f"{named(rows)}, by event-time columns and constants",
                    hint=f"{missing_edit(rows, changes, sources, normal.derived)}; or emit groups as they are then: "
                    "EMIT WHEN WATERMARK PAST WINDOW_END(w)",
                )


def _kept_for_ever(rows: RelationId, changes: RelationId, edit: str) -> Unsupported:
    return Unsupported(
        f"rows of {named(rows)} would be kept forever",
        detail=f"no condition says how far back changes of {named(changes)} can reach, by event-time columns and "
        "constants",
        hint=f"{edit}; conditions under OR or NOT, or with amounts from columns, bound nothing",
    )


def _kept(
    normal: Normalized, sources: Mapping[str, Source], relations: Mapping[RelationId, Derived]
) -> Iterator[tuple[RelationId, RelationId, bool]]:
    """Yield the state of a view: rows of a relation, kept for changes of another one; and whether it is bounded."""
    frontiers = Frontiers(sources, {**relations, **normal.derived})
    for block in (normal.block, *(block for derived in normal.derived.values() for block in derived.blocks)):
        for at, each in enumerate(block.inputs):
            for start, other in enumerate(block.inputs):
                if start != at and not other.arrival:
                    is_bounded = any(
                        frontiers.limit(block, start, i) and frontiers.has_time(block, (start, at), i)
                        for i, _ in each.columns
                    )
                    yield all_rows(each.relation), all_rows(other.relation), is_bounded
            if each.mode != "inner" and not each.arrival:
                ids = {name: i for i, name in each.columns}
                ways = frontiers.key_frontier(block, at)
                is_bounded = all(any(frontiers.has_time(block, (at,), ids[name]) for name in way) for way in ways)
                yield all_rows(each.relation), all_rows(each.relation), is_bounded
    for derived in normal.derived.values():
        operation = derived.operation
        if operation.keeps_state:
            ways = operation.expiry(frontiers, derived, operation.expiry_columns(derived))
            is_bounded = all(any(operation.is_never_null(frontiers, derived, name) for name in way) for way in ways)
            if operation.filters_late_rows or not is_bounded:
                yield derived.id, derived.id, is_bounded


def retained_bounds(source: Source) -> list[RetentionBound]:
    """Return the bounds of RETAIN INTERVAL …: for each event time, that long behind its watermark."""
    assert source.retained is not None
    result = []
    for name in source.watermarks:
        is_date = pa.types.is_date(source.schema.field(name).type)
        amount = -(-source.retained // _DAY) if is_date else source.retained
        result.append(RetentionBound(name, Watermark(source.name, name, amount)))
    return result


def on_time(sources: Mapping[str, Source]) -> frozenset[str]:
    """Return the sources that can have late rows. Rows of a table are replaced whatever their time."""
    return frozenset(s.name for s in sources.values() if s.watermarks and s.kind != "table")

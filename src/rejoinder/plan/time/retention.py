"""Retention: how long rows of an arrangement are kept, and which views read their sources on time because of that.

An arrangement is shared. A row of it may be forgotten when no user can meet it any more: each has limits on columns of
times, of which one is enough. One user that may ask for any row keeps them all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from rejoinder.errors import Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.ir.expression import Expression
from rejoinder.ir.identities import RelationId, all_rows
from rejoinder.ir.nodes import Or
from rejoinder.plan.blocks.normal_form import Block, Derived, Normalised
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.retention_bound import Limit, Retention
from rejoinder.plan.time.bound_hints import missing_edit, named
from rejoinder.plan.time.frontier import Frontiers
from rejoinder.watermarks.formula import Watermark, least

Limits = tuple[Limit, ...]
"""What one user says about the rows that it asks for no more: one limit of them is enough."""

_DAY = 86_400_000_000

Uses = Sequence[Limits]
"""The ways in which one user asks for rows: it asks for a row as long as it does in one of them."""


class Retentions:
    """Collects what each user of an arrangement asks for."""

    def __init__(self, frontiers: Frontiers) -> None:
        self.frontiers = frontiers
        self._uses: dict[str, list[Limits]] = {}
        self._conditions: dict[str, dict[str, Expression | None]] = {}

    def note(self, arrangement: Arrangement, uses: Uses | None, condition: Expression | None = None) -> None:
        """Note a user, for each of its uses by which limits it asks for a row no more. None: it may ask for any.

        It asks only for rows for which the `condition` on columns of the arrangement is true; None: for all.
        """
        self._uses.setdefault(arrangement.id, []).extend(uses or [()])
        self._conditions.setdefault(arrangement.id, {})["" if condition is None else condition.key] = condition

    def met(self, block: Block, start: int, at: int) -> Uses:
        """Below which times rows of input `at` are met no more by changes of input `start`."""
        found = [(i, name, self.frontiers.limit(block, start, i)) for i, name in block.inputs[at].columns]
        both, has_time = (start, at), self.frontiers.has_time
        return [tuple(Limit(name, below, not has_time(block, both, i)) for i, name, below in found if below)]

    def again(self, block: Block, at: int) -> Uses:
        """Below which times rows of input `at`, which is asked for keys, share theirs with no change of it."""
        ids, has_time = {name: i for i, name in block.inputs[at].columns}, self.frontiers.has_time
        return [
            tuple(Limit(name, below, not has_time(block, (at,), ids[name])) for name, below in way.items())
            for way in self.frontiers.again(block, at)
        ]

    def own(self, relation: RelationId, names: list[str]) -> Uses:
        """Below which times a relation changes no more."""
        found = {name: self.frontiers.of(relation, name) for name in names}
        known = self.frontiers.is_known
        return [tuple(Limit(name, below, not known(relation, name)) for name, below in found.items() if below)]

    def made(self, derived: Derived) -> Uses:
        """The times below which the state of a derived relation's operation is no longer needed."""
        names, known = derived.operation.expiry_columns(derived), self.frontiers.is_known_input
        return [
            tuple(Limit(name, below, not known(derived, name)) for name, below in way.items())
            for way in self.frontiers.ways(derived, _finest(derived, names))
        ]

    def of(self, arrangement: Arrangement) -> Retention | None:
        """How long rows of an arrangement are kept; None: for ever."""
        uses = self._uses.get(arrangement.id, [()])
        if not all(uses):
            return None
        condition = self._condition(arrangement)
        parts = () if condition is None else tuple(sorted(self._conditions[arrangement.id]))
        return Retention(_together(uses), condition, parts)

    def _condition(self, arrangement: Arrangement) -> Expression | None:
        """Which rows somebody asks for; None: all. Where one throws, the row is left to who asks."""
        asked = [condition for _, condition in sorted(self._conditions.get(arrangement.id, {}).items())]
        known = [condition for condition in asked if condition is not None and not condition.can_fail]
        if not known or len(known) < len(asked):
            return None
        if len(known) == 1:
            return known[0]
        text = " OR ".join(f"({condition.text})" for condition in known)
        return Expression(Or(condition.node for condition in known), text)


def _finest(derived: Derived, names: Sequence[str]) -> list[str]:
    """Of columns that rise with the same one, such as both ends of a window, the one that tells most of it."""
    found: dict[tuple[str | None, ...], list[tuple[float, str]]] = {}
    for name in names:
        made = [dict(block.outputs)[name].monotone for block in derived.blocks]
        spans = [None if rising is None else rising.span for rising in made]
        width = max(math.inf if span is None else span[1] - span[0] for span in spans)
        found.setdefault(tuple(None if rising is None else rising.column for rising in made), []).append((width, name))
    return [min(same, key=lambda each: each[0])[1] for same in found.values()]


def _together(uses: Sequence[Limits]) -> tuple[Limits, ...]:
    """What users say together, in few words: those with a limit on the same column alone are one.

    A user with all the limits of another one adds nothing: it asks for no row that the other does not ask for.
    """
    alone: dict[str, list[Limit]] = {}
    for limits in uses:
        if len(limits) == 1:
            alone.setdefault(limits[0].column, []).append(limits[0])
    found: list[Limits] = [
        (Limit(name, least([limit.below for limit in limits]), any(limit.keeps_nulls for limit in limits)),)
        for name, limits in alone.items()
    ]
    found += dict.fromkeys(limits for limits in uses if len(limits) > 1)
    return tuple(limits for limits in found if not any(set(other) < set(limits) for other in found))


def is_timed(normal: Normalised, sources: Mapping[str, Source], relations: Mapping[RelationId, Derived]) -> bool:
    """Whether a view keeps something, and all that it keeps is bounded in time if it reads its sources on time."""
    kept = list(_kept(normal, sources, relations))
    return bool(kept) and all(is_bounded for _, _, is_bounded in kept)


def refuse_unbounded(
    normal: Normalised, sources: Mapping[str, Source], relations: Mapping[RelationId, Derived]
) -> None:
    """Refuse a view that would have to keep rows for ever, naming them and the condition that is missing."""
    kept = list(_kept(normal, sources, relations))
    for rows, changes, is_bounded in kept:
        if not is_bounded:
            edit = missing_edit(rows, changes, sources, normal.derived, both=(changes, rows, False) in kept)
            raise _kept_for_ever(rows, changes, edit)
    if not kept:
        raise Unsupported(
            "EMIT FINAL of a query that keeps nothing is not supported",
            detail="its rows are final when they come",
            hint="leave EMIT FINAL out",
        )


def refuse_unfinished(
    normal: Normalised, sources: Mapping[str, Source], relations: Mapping[RelationId, Derived]
) -> None:
    """Refuse EMIT FINAL of groups by a window if a join below can change them after the window.

    Groups of versions are not refused: they wait for all watermarks.
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
    normal: Normalised, sources: Mapping[str, Source], relations: Mapping[RelationId, Derived]
) -> Iterator[tuple[RelationId, RelationId, bool]]:
    """What a view keeps: rows of a relation, for changes of another one; and whether that is bounded in time."""
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
                ways = frontiers.again(block, at)
                is_bounded = all(any(frontiers.has_time(block, (at,), ids[name]) for name in way) for way in ways)
                yield all_rows(each.relation), all_rows(each.relation), is_bounded
    for derived in normal.derived.values():
        operation = derived.operation
        if operation.keeps_state:
            ways = frontiers.ways(derived, operation.expiry_columns(derived))
            is_bounded = all(any(frontiers.is_known_input(derived, name) for name in way) for way in ways)
            if operation.filters_late_rows or not is_bounded:
                yield derived.id, derived.id, is_bounded


def retained_limits(source: Source) -> list[Limit]:
    """Until when rows of a source are kept because it says RETAIN: for each event time, so long after its watermark."""
    assert source.retained is not None
    result = []
    for name in source.watermarks:
        is_date = pa.types.is_date(source.schema.field(name).type)
        amount = -(-source.retained // _DAY) if is_date else source.retained
        result.append(Limit(name, Watermark(source.name, name, amount)))
    return result


def on_time(sources: Mapping[str, Source]) -> frozenset[str]:
    """The sources that can be read on time: rows of a table are replaced, whatever their time."""
    return frozenset(s.name for s in sources.values() if s.watermarks and s.kind != "table")

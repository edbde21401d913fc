"""Retention: when rows of an arrangement expire, and which views read their sources on time because of that.

An arrangement is shared. A row expires once no user needs it. Each user has bounds on time columns, and no longer needs
a row that is below one of them. A user without bounds keeps all rows.
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
from rejoinder.plan.physical.retention_bound import Retention, RetentionBound
from rejoinder.plan.time.bound_hints import missing_edit, named
from rejoinder.plan.time.frontier import Frontiers
from rejoinder.watermarks.formula import Watermark, least

Bounds = tuple[RetentionBound, ...]
"""A user no longer needs a row that is below one of these bounds."""

_DAY = 86_400_000_000

Uses = Sequence[Bounds]
"""The bounds of each use that one user makes of rows. It needs a row as long as one of its uses does."""


class Retentions:
    """Collects which rows each user of an arrangement needs."""

    def __init__(self, frontiers: Frontiers) -> None:
        self.frontiers = frontiers
        self._uses: dict[str, list[Bounds]] = {}
        self._conditions: dict[str, dict[str, Expression | None]] = {}

    def add_user(self, arrangement: Arrangement, uses: Uses | None, condition: Expression | None = None) -> None:
        """Add a user with the bounds of each of its uses; None: it may need any row.

        It needs only rows for which the `condition` on columns of the arrangement is true; None: all rows.
        """
        self._uses.setdefault(arrangement.id, []).extend(uses or [()])
        self._conditions.setdefault(arrangement.id, {})["" if condition is None else condition.key] = condition

    def for_lookup(self, block: Block, start: int, target: int) -> Uses:
        """The bounds of rows of input `target` for lookups by changes of input `start`."""
        limits = [(i, name, self.frontiers.limit(block, start, i)) for i, name in block.inputs[target].columns]
        both, has_time = (start, target), self.frontiers.has_time
        return [tuple(RetentionBound(name, below, not has_time(block, both, i)) for i, name, below in limits if below)]

    def for_keys(self, block: Block, number: int) -> Uses:
        """The bounds of rows of an input with a mode, whose own changes ask whether a key has rows."""
        ids, has_time = {name: i for i, name in block.inputs[number].columns}, self.frontiers.has_time
        return [
            tuple(
                RetentionBound(name, below, not has_time(block, (number,), ids[name])) for name, below in source.items()
            )
            for source in self.frontiers.key_frontiers(block, number)
        ]

    def for_relation(self, relation: RelationId, names: list[str]) -> Uses:
        """The bounds below which a relation no longer changes."""
        frontiers = {name: self.frontiers.of(relation, name) for name in names}
        known = self.frontiers.is_known
        return [
            tuple(RetentionBound(name, below, not known(relation, name)) for name, below in frontiers.items() if below)
        ]

    def for_input(self, derived: Derived) -> Uses:
        """The bounds of the state of a derived relation's operation: its input no longer changes below them."""
        operation, frontiers = derived.operation, self.frontiers
        names = _finest(derived, operation.expiry_columns(derived))
        return [
            tuple(
                RetentionBound(name, below, not operation.is_never_null(frontiers, derived, name))
                for name, below in source.items()
            )
            for source in operation.expiry(frontiers, derived, names)
        ]

    def of(self, arrangement: Arrangement) -> Retention | None:
        """When rows of an arrangement expire; None: never."""
        uses = self._uses.get(arrangement.id, [()])
        if not all(uses):
            return None
        condition = self._condition(arrangement)
        parts = () if condition is None else tuple(sorted(self._conditions[arrangement.id]))
        return Retention(_combined(uses), condition, parts)

    def _condition(self, arrangement: Arrangement) -> Expression | None:
        """Which rows some user needs; None: all. A condition that can fail on a row is left to the user."""
        conditions = [condition for _, condition in sorted(self._conditions.get(arrangement.id, {}).items())]
        usable = [condition for condition in conditions if condition is not None and not condition.can_fail]
        if not usable or len(usable) < len(conditions):
            return None
        if len(usable) == 1:
            return usable[0]
        text = " OR ".join(f"({condition.text})" for condition in usable)
        return Expression(Or(condition.node for condition in usable), text)


def _finest(derived: Derived, names: Sequence[str]) -> list[str]:
    """Of columns that are monotone in the same column, such as both ends of a window, the one with the least error."""
    by_column: dict[tuple[str | None, ...], list[tuple[float, str]]] = {}
    for name in names:
        monotones = [dict(block.outputs)[name].monotone for block in derived.blocks]
        spans = [None if monotone is None else monotone.span for monotone in monotones]
        width = max(math.inf if span is None else span[1] - span[0] for span in spans)
        columns = tuple(None if monotone is None else monotone.column for monotone in monotones)
        by_column.setdefault(columns, []).append((width, name))
    return [min(same, key=lambda width_and_name: width_and_name[0])[1] for same in by_column.values()]


def _combined(uses: Sequence[Bounds]) -> tuple[Bounds, ...]:
    """The bounds of all users: one entry for all users that have a bound on one column only.

    A user that has all bounds of another user, and more, adds nothing: it needs no row that the other does not need.
    """
    single: dict[str, list[RetentionBound]] = {}
    for bounds in uses:
        if len(bounds) == 1:
            single.setdefault(bounds[0].column, []).append(bounds[0])
    combined: list[Bounds] = [
        (RetentionBound(name, least([b.below for b in bounds]), any(b.keeps_nulls for b in bounds)),)
        for name, bounds in single.items()
    ]
    combined += dict.fromkeys(bounds for bounds in uses if len(bounds) > 1)
    return tuple(bounds for bounds in combined if not any(set(other) < set(bounds) for other in combined))


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
        for number, kept in enumerate(block.inputs):
            for start, other in enumerate(block.inputs):
                if start != number and not other.arrival:
                    is_bounded = any(
                        frontiers.limit(block, start, i) and frontiers.has_time(block, (start, number), i)
                        for i, _ in kept.columns
                    )
                    yield all_rows(kept.relation), all_rows(other.relation), is_bounded
            if kept.mode != "inner" and not kept.arrival:
                ids = {name: i for i, name in kept.columns}
                is_bounded = all(
                    any(frontiers.has_time(block, (number,), ids[name]) for name in source)
                    for source in frontiers.key_frontiers(block, number)
                )
                yield all_rows(kept.relation), all_rows(kept.relation), is_bounded
    for derived in normal.derived.values():
        operation = derived.operation
        if operation.keeps_state:
            changes = operation.expiry(frontiers, derived, operation.expiry_columns(derived))
            is_bounded = all(
                any(operation.is_never_null(frontiers, derived, name) for name in source) for source in changes
            )
            if operation.filters_late_rows or not is_bounded:
                yield derived.id, derived.id, is_bounded


def retained_bounds(source: Source) -> list[RetentionBound]:
    """The bounds of RETAIN INTERVAL: for each event-time column, its watermark minus the interval."""
    assert source.retained is not None
    result = []
    for name in source.watermarks:
        is_date = pa.types.is_date(source.schema.field(name).type)
        amount = -(-source.retained // _DAY) if is_date else source.retained
        result.append(RetentionBound(name, Watermark(source.name, name, amount)))
    return result


def on_time(sources: Mapping[str, Source]) -> frozenset[str]:
    """The sources that can be read on time: rows of a table are replaced, whatever their time."""
    return frozenset(s.name for s in sources.values() if s.watermarks and s.kind != "table")

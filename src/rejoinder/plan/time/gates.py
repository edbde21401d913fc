"""Gates: the views whose changes are pending until the clock or a watermark lets them be emitted.

A gate is a temporal filter behind a view's relation: the view holds the rows whose emission time is reached. Pending
rows are sorted by time, so that an epoch reads only those that become due, and then drops them as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from rejoinder.errors import InvalidSql
from rejoinder.ir.catalog import Source
from rejoinder.ir.expression import Expression
from rejoinder.ir.identities import PendingRows, RelationId, ViewRows, source_of
from rejoinder.ir.logical import EMIT_AT, Emission, Predicate
from rejoinder.plan.blocks.lineage import origins, origins_of, versions_of
from rejoinder.plan.blocks.normal_form import Block, Derived, Input
from rejoinder.plan.blocks.padding import is_null_on_padding, is_true_on_padding
from rejoinder.plan.rounds.program import Gate, row_arrangement
from rejoinder.plan.time.bound_hints import declaration_edit
from rejoinder.plan.time.frontier import Frontiers
from rejoinder.watermarks.formula import Formula, UnionMinimum, Watermark, least, lowered

MICROSECOND = pa.timestamp("us")


def gates_of(
    view: str, block: Block, derived: Mapping[RelationId, Derived], emission: Emission, sources: Mapping[str, Source]
) -> tuple[Gate, ...]:
    """The gates of a view. Raises `InvalidSql` if a watermark that it needs is not declared."""
    pending = row_arrangement(PendingRows(view), block.schema)
    if emission.interval:
        schema = block.schema.append(pa.field(EMIT_AT, MICROSECOND))
        pending = row_arrangement(PendingRows(view), schema)
        return (Gate(view, pending, emission.interval),)
    if emission.clocks:
        each = [replace(pending, relation=PendingRows(view, at)) for at in range(len(emission.clocks))]
        return tuple(
            Gate(view, own, 0, Watermark(*origin), at, partner=True)
            for at, (own, origin) in enumerate(zip(each, emission.clocks, strict=True))
        )
    release = dict(block.outputs)[EMIT_AT]
    _refuse_padded(view, block, derived, release)
    frontiers = Frontiers(sources, derived)
    passed = [frontiers.of_output(ViewRows(view), block, time) for time in emission.times or (release,)]
    final = [formula for formula in passed if formula is not None]
    if emission.policy == "final" and len(final) == len(passed):
        return (Gate(view, pending, 0, lowered(least(final), 1)),)
    return (Gate(view, pending, 0, _limit(view, block, derived, emission, sources)),)


def _limit(
    view: str, block: Block, derived: Mapping[RelationId, Derived], emission: Emission, sources: Mapping[str, Source]
) -> Formula:
    """What a row waits for: the watermarks of its release, and of the times that belong to it in other inputs."""
    release = dict(block.outputs)[EMIT_AT]
    needed = sorted(origins(release, block, derived))
    for source, column in (*needed, *sorted(versions_of(block, derived))):
        if source not in sources:
            raise InvalidSql(
                f"`{view}` waits for a watermark of `{source}`.`{column}`, which has no watermark",
                detail="its rows came late or could not be read, so they have no event time",
                hint="leave EMIT … out, or net the changes over a period: EMIT EVERY INTERVAL 1 MINUTE",
            )
        if column not in sources[source].watermarks:
            policy = "WHEN WATERMARK PAST" if emission.policy == "watermark" else emission.policy.upper()
            released = f"EMIT {policy} releases a row by that column"
            raise InvalidSql(
                f"`{view}` waits for a watermark of `{source}`.`{column}`, and none is declared",
                detail=released if (source, column) in needed else "a later version would change emitted rows",
                hint=declaration_edit(sources[source], column),
            )
    if not needed:
        raise InvalidSql(
            f"`{view}` waits for a watermark, but names no event-time column",
            detail=f"release: {release.text}",
            hint="take an event-time column, or the end of a window: WINDOW_END(w)",
        )
    if not all(_counts_alike(sources[name].schema.field(c).type, release.type) for name, c in needed):
        raise InvalidSql(
            f"`{view}` compares a release of type {release.type} with watermarks of another type",
            detail=", ".join(f"{name}.{c}: {sources[name].schema.field(c).type}" for name, c in needed),
            hint="release rows by a column of the type of the event-time column",
        )
    found = _Waiting(Frontiers(sources, derived), release.type).of_block(block, set(release.columns))
    assert found is not None, "there is at least the watermark of the release"
    return found


def _refuse_padded(view: str, block: Block, derived: Mapping[RelationId, Derived], release: Expression) -> None:
    """Refuse a release that rows without a partner lack: they would come out at once, and be taken back later."""
    for each in block.inputs:
        padded = any(set(release.columns) <= columns for columns in _paddings(each, derived, block.predicates))
        if padded and is_null_on_padding(release, each):
            named = ", ".join(f"{source}.{column}" for source, column in sorted(origins(release, block, derived)))
            raise InvalidSql(
                f"`{view}` waits for a time of {named} that rows without a partner do not have",
                detail="they would be emitted at once, and retracted when a partner comes",
                hint="give them a time, as in PAST COALESCE(WINDOW_END(v.w), o.ts): a time of the other side; or "
                "group by such a time, as in TUMBLE(COALESCE(r.ts, o.ts), …)",
            )


def _paddings(
    each: Input, derived: Mapping[RelationId, Derived], conditions: Sequence[Predicate]
) -> Iterator[set[str]]:
    """The columns of an input that are NULL together where an outer join found no partner, and conditions allow it."""
    made, own = derived.get(each.relation), {i for i, _ in each.columns}
    if each.mode == "left":
        tests = [p.expression for p in conditions if p.expression.columns and own.issuperset(p.expression.columns)]
        if all(is_true_on_padding(test, each) for test in tests):
            yield own
    elif made is not None and made.operation.passes_padding:
        for block in made.blocks:
            made_of = {i: made.operation.lineage(made, block, name) for i, name in each.columns}
            read = {i: {c for e in expressions for c in e.columns} for i, expressions in made_of.items()}
            if made.operation.pads:
                yield {i for i, columns in read.items() if not columns}
            for padded in (found for inner in block.inputs for found in _paddings(inner, derived, block.predicates)):
                yield {i for i, columns in read.items() if columns and columns <= padded}


class _Waiting:
    """Finds what the watermarks below a relation have passed, as far as they concern a release.

    Of an input that the release comes from, these are the columns that it is made of. Of another one, whose changes can
    bring or take back a row too, the columns that conditions compare with those; if there are none, all of the type.
    A union does not wait for a branch that is idle, if what it sends later can be told to be late: by a column of the
    union that is an event time in each branch. All that the release is made of must be such columns.
    """

    def __init__(self, frontiers: Frontiers, kind: pa.DataType) -> None:
        self.frontiers, self.kind = frontiers, kind

    def of_block(self, block: Block, columns: set[str]) -> Formula | None:
        """The limit of a block; `columns` are those that the release is made of. None if it has no watermark."""
        compared, found = self._compared(block, columns), []
        for each in block.inputs:
            own = {name for i, name in each.columns if i in columns}
            others = {name for i, name in each.columns if i in compared and self._is_timed(each, name)}
            found.append(self.of_relation(each.relation, own or others))
        known = [limit for limit in found if limit is not None]
        return least(known) if known else None

    def of_relation(self, relation: RelationId, names: set[str]) -> Formula | None:
        """The limit of a relation, of which these columns concern the release."""
        made = self.frontiers.derived.get(relation)
        if made is None:
            source = self.frontiers.sources.get(source_of(relation))
            timed = [] if source is None else [c for c in source.watermarks if self._fits(source.schema.field(c).type)]
            timed = [column for column in timed if column in names] or timed
            return least([Watermark(source.name, column) for column in timed]) if source and timed else None
        found = []
        for block in made.blocks:
            made_of = (expression for name in names for expression in made.operation.lineage(made, block, name))
            found.append(self.of_block(block, {i for expression in made_of for i in expression.columns}))
        known = [limit for limit in found if limit is not None]
        if len(known) > 1 and len(known) == len(found) and self._is_told(made, names):
            return self.frontiers.merged(made, known, str(made.id))
        return least(known) if known else None

    def _compared(self, block: Block, columns: set[str]) -> set[str]:
        """The columns of a block that its conditions compare with some of these."""
        predicates = (*block.predicates, *(p for each in block.inputs for p in each.on))
        orders = [p.order[0].columns + p.order[1].columns for p in predicates if p.order is not None]
        bounds = self.frontiers.bounds(block, range(len(block.inputs)))
        return {i for sides in (*bounds, *orders) if columns & set(sides) for i in sides}

    def _is_timed(self, each: Input, name: str) -> bool:
        """Whether a column of an input is made from event times alone."""
        sources, found = self.frontiers.sources, origins_of(each.relation, name, self.frontiers.derived)
        return all(source in sources and column in sources[source].watermarks for source, column in found)

    def _is_told(self, made: Derived, names: set[str]) -> bool:
        """Whether late changes of a union are known by its columns."""
        times = [f.name for f in made.schema if isinstance(self.frontiers.of(made.id, f.name), UnionMinimum)]
        fitting = [name for name in times if self._fits(made.schema.field(name).type)]
        return names <= set(times) and bool(fitting)

    def _fits(self, kind: pa.DataType) -> bool:
        return _counts_alike(kind, self.kind)


def _counts_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether times of two types are in one unit: of one type, or integers of any width."""
    return bool(one.id == other.id or (pa.types.is_integer(one) and pa.types.is_integer(other)))

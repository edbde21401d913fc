"""Gates: when the pending changes of a view are emitted, by the clock or by watermarks.

A gate is a temporal filter on the relation of a view: the view has the rows whose emit time is reached. Pending rows
are stored by time, so that an epoch reads only those that become due, and then drops whole runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from rejoinder.errors import InvalidSql
from rejoinder.ir.catalog import Source
from rejoinder.ir.expressions.expression import Expression
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
    """Return the gates of a view. Raises `InvalidSql` if a watermark that it needs is not declared."""
    pending = row_arrangement(PendingRows(view), block.schema)
    if emission.interval:
        schema = block.schema.append(pa.field(EMIT_AT, MICROSECOND))
        pending = row_arrangement(PendingRows(view), schema)
        return (Gate(view, pending, emission.interval),)
    if emission.clocks:
        each = [replace(pending, relation=PendingRows(view, at)) for at in range(len(emission.clocks))]
        return tuple(
            Gate(view, own, 0, Watermark(*origin), at, awaits_match=True)
            for at, (own, origin) in enumerate(zip(each, emission.clocks, strict=True))
        )
    emit_time = dict(block.outputs)[EMIT_AT]
    _refuse_padded(view, block, derived, emit_time)
    frontiers = Frontiers(sources, derived)
    passed = [frontiers.of_output(ViewRows(view), block, time) for time in emission.times or (emit_time,)]
    final = [formula for formula in passed if formula is not None]
    if emission.policy == "final" and len(final) == len(passed):
        return (Gate(view, pending, 0, lowered(least(final), 1)),)
    return (Gate(view, pending, 0, _limit(view, block, derived, emission, sources)),)


def _limit(
    view: str, block: Block, derived: Mapping[RelationId, Derived], emission: Emission, sources: Mapping[str, Source]
) -> Formula:
    """Return the limit of a gate: over the watermarks of the emit time, and of related times in other inputs."""
    emit_time = dict(block.outputs)[EMIT_AT]
    needed = sorted(origins(emit_time, block, derived))
    for source, column in (*needed, *sorted(versions_of(block, derived))):
        if source not in sources:
            raise InvalidSql(
                f"`{view}` waits for a watermark of `{source}`.`{column}`, which has no watermark",
                detail="its rows were late or could not be read, so they have no event time",
                hint="remove EMIT …, or emit periodically: EMIT EVERY INTERVAL 1 MINUTE",
            )
        if column not in sources[source].watermarks:
            policy = "WHEN WATERMARK PAST" if emission.policy == "watermark" else emission.policy.upper()
            released = f"EMIT {policy} emits a row by that column"
            raise InvalidSql(
                f"`{view}` waits for a watermark of `{source}`.`{column}`, and none is declared",
                detail=released if (source, column) in needed else "a later version would change emitted rows",
                hint=declaration_edit(sources[source], column),
            )
    if not needed:
        raise InvalidSql(
            f"`{view}` waits for a watermark, but names no event-time column",
            detail=f"emit time: {emit_time.text}",
            hint="use an event-time column, or the end of a window: WINDOW_END(w)",
        )
    if not all(_counts_alike(sources[name].schema.field(c).type, emit_time.type) for name, c in needed):
        raise InvalidSql(
            f"`{view}` compares an emit time of type {emit_time.type} with watermarks of another type",
            detail=", ".join(f"{name}.{c}: {sources[name].schema.field(c).type}" for name, c in needed),
            hint="use an emit time of the type of the event-time column",
        )
    limit = _WatermarkLimit(Frontiers(sources, derived), emit_time.type).of_block(block, set(emit_time.columns))
    assert limit is not None, "there is at least the watermark of the emit time"
    return limit


def _refuse_padded(view: str, block: Block, derived: Mapping[RelationId, Derived], emit_time: Expression) -> None:
    """Raise `InvalidSql` for an emit time that is NULL in padding: such rows would be emitted at once and retracted."""
    for each in block.inputs:
        padded = any(set(emit_time.columns) <= columns for columns in _paddings(each, derived, block.predicates))
        if padded and is_null_on_padding(emit_time, each):
            named = ", ".join(f"{source}.{column}" for source, column in sorted(origins(emit_time, block, derived)))
            raise InvalidSql(
                f"`{view}` waits for a time of {named} that rows without a match do not have",
                detail="they would be emitted at once, and retracted when a match arrives",
                hint="use a time of the other side for them, as in PAST COALESCE(WINDOW_END(v.w), o.ts); or "
                "group by such a time, as in TUMBLE(COALESCE(r.ts, o.ts), …)",
            )


def _paddings(
    each: Input, derived: Mapping[RelationId, Derived], conditions: Sequence[Predicate]
) -> Iterator[set[str]]:
    """Yield the columns of an input that are NULL together in padding, if the conditions keep such rows."""
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
            for padded in (ids for inner in block.inputs for ids in _paddings(inner, derived, block.predicates)):
                yield {i for i, columns in read.items() if columns and columns <= padded}


class _WatermarkLimit:
    """Finds the watermarks below a relation that limit an emit time.

    For an input of the emit time, these are the columns that it is computed from. For another input, whose changes can
    also add or retract a row, these are the columns that conditions compare with them, or all columns of that type.
    A union ignores an idle branch if late rows of the branch can be recognised: by a column of the union that is an
    event time in each branch. The emit time must be computed from such columns only.
    """

    def __init__(self, frontiers: Frontiers, kind: pa.DataType) -> None:
        self.frontiers, self.kind = frontiers, kind

    def of_block(self, block: Block, columns: set[str]) -> Formula | None:
        """Return the limit of a block; the emit time is computed from `columns`. None if it has no watermark."""
        compared, limits = self._compared(block, columns), []
        for each in block.inputs:
            own = {name for i, name in each.columns if i in columns}
            others = {name for i, name in each.columns if i in compared and self._is_timed(each, name)}
            limits.append(self.of_relation(each.relation, own or others))
        known = [limit for limit in limits if limit is not None]
        return least(known) if known else None

    def of_relation(self, relation: RelationId, names: set[str]) -> Formula | None:
        """Return the limit of a relation, of which these columns concern the emit time."""
        made = self.frontiers.derived.get(relation)
        if made is None:
            source = self.frontiers.sources.get(source_of(relation))
            timed = [] if source is None else [c for c in source.watermarks if self._fits(source.schema.field(c).type)]
            timed = [column for column in timed if column in names] or timed
            return least([Watermark(source.name, column) for column in timed]) if source and timed else None
        limits = []
        for block in made.blocks:
            made_of = (expression for name in names for expression in made.operation.lineage(made, block, name))
            limits.append(self.of_block(block, {i for expression in made_of for i in expression.columns}))
        known = [limit for limit in limits if limit is not None]
        if len(known) > 1 and len(known) == len(limits) and self._recognises_late(made, names):
            return self.frontiers.merged(made, known, str(made.id))
        return least(known) if known else None

    def _compared(self, block: Block, columns: set[str]) -> set[str]:
        """Return the columns of a block that its conditions compare with some of these."""
        predicates = (*block.predicates, *(p for each in block.inputs for p in each.on))
        orders = [p.order[0].columns + p.order[1].columns for p in predicates if p.order is not None]
        bounds = self.frontiers.bounds(block, range(len(block.inputs)))
        return {i for sides in (*bounds, *orders) if columns & set(sides) for i in sides}

    def _is_timed(self, each: Input, name: str) -> bool:
        """Return whether a column of an input is computed from event times only."""
        sources, columns = self.frontiers.sources, origins_of(each.relation, name, self.frontiers.derived)
        return all(source in sources and column in sources[source].watermarks for source, column in columns)

    def _recognises_late(self, made: Derived, names: set[str]) -> bool:
        """Return whether late changes of a union can be recognised by its columns."""
        times = [f.name for f in made.schema if isinstance(self.frontiers.of(made.id, f.name), UnionMinimum)]
        fitting = [name for name in times if self._fits(made.schema.field(name).type)]
        return names <= set(times) and bool(fitting)

    def _fits(self, kind: pa.DataType) -> bool:
        return _counts_alike(kind, self.kind)


def _counts_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether times of two types have the same unit: one type, or integers of any width."""
    return bool(one.id == other.id or (pa.types.is_integer(one) and pa.types.is_integer(other)))

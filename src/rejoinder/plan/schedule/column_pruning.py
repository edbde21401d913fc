"""Which columns are kept, sent and read: only those that some step reads.

A view reads a few columns of a source. An arrangement that exists only for lookups is *lean*: it has these columns, and
no row whose key matches nothing. One place still has every row with all columns, so that deletes can be checked and
later views be filled: the arrangement by primary key of a table, the files or the changelog of a stream, or else one
arrangement from which no row expires. A view that needs more columns fills the arrangement again from there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rejoinder.connectors.registry import source_side
from rejoinder.ir.catalog import Source
from rejoinder.ir.expressions.expression import Expression
from rejoinder.kernels.arrow.columns import DIFF, ERROR, SEQUENCE
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.dataflow import Scan, SourceScan
from rejoinder.plan.physical.steps import Check, Derive, OnTime, Send, Step
from rejoinder.plan.schedule.source_state import is_kept_outside

if TYPE_CHECKING:
    from rejoinder.plan.schedule.dataflow_builder import Builder

_HIDDEN = (DIFF, ERROR, SEQUENCE)


def make_lean(builder: Builder, source: Source) -> None:
    """Make those arrangements of a source lean that exist only for lookups. Called once all users are known."""
    needed = builder.needed.get(source.relation, {})
    looked_up = [each for each in needed.values() if None not in builder.read_columns[each.id] and not each.key.whole]
    if not (source.kind == "table" or is_kept_outside(source) or _has_all(builder, needed, looked_up)):
        unbounded = [each for each in looked_up if builder.retentions.of(each) is None]
        if not unbounded:
            return
        # that of the oldest view, which remains the same when views are added
        looked_up.remove(min(unbounded, key=lambda each: (_oldest_user(builder, each), each.id)))
    for each in looked_up:
        retention = builder.retentions.of(each)
        times = builder.times(each.relation, each.schema)
        bounds = () if retention is None else (bound.column for bound in retention.bounds)
        condition = () if retention is None or retention.condition is None else retention.condition.columns
        read = {name for columns in builder.read_columns[each.id] for name in columns or ()}
        needed[each.id] = each.with_columns({*read, *times, *bounds, *condition})


def _oldest_user(builder: Builder, arrangement: Arrangement) -> int:
    """Return the number of the first view that looks rows up in an arrangement."""
    views = list(builder.program.views)
    users = builder.program.named(builder.users[arrangement.id])
    return min((views.index(name) for name in users if name in views), default=0)


def _has_all(builder: Builder, needed: Mapping[str, Arrangement], looked_up: Collection[Arrangement]) -> bool:
    """Whether an arrangement that stays as it is has every row."""
    return any(builder.retentions.of(each) is None for each in needed.values() if each not in looked_up)


def with_sent_columns(
    rounds: Sequence[Sequence[Step]], read: Mapping[str, Sequence[Collection[str] | None]]
) -> tuple[tuple[Step, ...], ...]:
    """Return the rounds, in which each channel carries the columns that are read from it; `read` is by its stream."""

    def narrowed(step: Step) -> Step:
        columns = _union(read.get(step.channel.stream, [None])) if isinstance(step, Send) else None
        return step if columns is None or not isinstance(step, Send) else replace(step, columns=columns)

    return tuple(tuple(narrowed(step) for step in steps) for steps in rounds)


def with_read_columns(scan: Scan, steps: Sequence[Step]) -> Scan:
    """Return the scan of a source with the columns that the steps of round 0 read.

    All columns are read where rows are rejected, computed or replaced by key, since these need the whole record. A
    late row needs it, too: the scan reads the whole records of a file from the first late row on.
    """
    if not isinstance(scan, SourceScan):
        return scan
    source = scan.source
    if source.kind == "table" or source.rejects or source.computed or source_side(source).schema_reader is None:
        return scan
    columns = _columns_from(scan.stream, steps)
    if columns is None:
        return scan
    partition = () if source.partition_by is None else (source.partition_by,)
    return replace(scan, columns=columns.union(source.watermarks, partition))


def _columns_from(stream: str, steps: Sequence[Step]) -> frozenset[str] | None:
    """Return the columns that some step reads from a stream; None: all."""
    return _union([_columns_of(step, steps) for step in steps if getattr(step, "input", None) == stream])


def _columns_of(step: Step, steps: Sequence[Step]) -> Collection[str] | None:
    """Return the columns that a step reads from its input, for itself or for those that read its output; None: all."""
    match step:
        case OnTime():
            passed = _columns_from(step.output, steps)
            return None if passed is None else passed.union(column for column, _ in step.times)
        case Send():
            return step.columns
        case Derive():
            return _named([step.predicate, step.optional, *(e for _, e in step.outputs)])
        case Check():
            return _named([step.predicate, *step.expressions])
        case _:
            return None


def _named(expressions: Sequence[Expression | None]) -> set[str]:
    return {name for expression in expressions if expression is not None for name in expression.columns}


def _union(read: Sequence[Collection[str] | None]) -> frozenset[str] | None:
    """Return the columns that some reader needs; None: all."""
    if None in read:
        return None
    return frozenset((*_HIDDEN, *(name for columns in read for name in columns or ())))

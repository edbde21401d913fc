"""Output watermarks: below which time no change of a view's column comes any more, as formulas.

For a column of a join that is the least of what was received for it, and of the column in the rows that are still kept.
An aggregate has watermarks at the bounds of its groups alone. A view that waits is held by the changes that are not out
yet, too: by the oldest of them, and not below what the gate tells of the times that can still be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rejoinder.ir.expression import Expression
from rejoinder.ir.identities import RelationId, ViewRows, is_on_time, source_of
from rejoinder.ir.logical import EMIT_AT, GATE
from rejoinder.ir.monotone import Monotone, shift, simplified
from rejoinder.plan.blocks.normal_form import Block, Derived
from rejoinder.plan.join.block_bounds import tightest
from rejoinder.plan.join.join_graph import input_of
from rejoinder.plan.rounds.program import Gate, Program
from rejoinder.plan.time.frontier import Frontiers, kept_key
from rejoinder.watermarks.formula import Formula, RetainedMinimum, Watermark, least, raised

Outputs = Mapping[str, Formula]


def outputs_of(program: Program) -> dict[str, Outputs]:
    """The watermarks of the columns that have one, by view; of a window, that of its start."""
    frontiers = Frontiers(program.sources, program.relations, unbounded=True)
    return {view: dict(_of_view(program, view, frontiers)) for view in program.views}


def _of_view(program: Program, view: str, frontiers: Frontiers) -> Iterator[tuple[str, Formula]]:
    block, gates = program.views[view], program.gates_of(view)
    if any(gate.limit is None for gate in gates):  # of who waits for the clock, nothing is known
        return
    for name, expression in block.outputs:
        found = None if name in (EMIT_AT, GATE) else frontiers.of_output(ViewRows(view), block, expression)
        if found is not None:
            for gate in gates:
                met, pending = _waiting(gate, block, expression, program.derived), gate.pending.relation
                found = RetainedMinimum(found, met, ViewRows(view), pending, name, kept_key(pending, name, block))
            yield name, found


def _waiting(gate: Gate, block: Block, expression: Expression, derived: Mapping[RelationId, Derived]) -> Formula | None:
    """What a gate tells of a column of the rows that wait there: they are not below it. None: nothing."""
    rising, release = expression.monotone, dict(block.outputs)[EMIT_AT].monotone
    assert rising is not None and gate.limit is not None
    if gate.partner and isinstance(gate.limit, Watermark):
        return _by_partner(gate.limit, block, rising)
    if release is None:
        return None
    limits = []
    for one, other in _together(block, rising, release, derived):
        back = other.least()
        if back is None:
            return None
        limits.append(raised(gate.limit, simplified((*shift(1), *back, *one.steps))))
    return least(limits) if limits else None


def _by_partner(limit: Watermark, block: Block, rising: Monotone) -> Formula | None:
    """Of rows that wait for a partner: no condition that compares the column with the partner's time has ended them."""
    for each in block.inputs:
        times = [i for i, name in each.columns if _is_clock(each.relation, name, limit)]
        for (later, earlier), steps in tightest(each.on).items():
            if later == rising.column and earlier in times:
                return raised(limit, simplified((*steps, *rising.steps)))
    return None


def _is_clock(relation: RelationId, name: str, limit: Watermark) -> bool:
    return is_on_time(relation) and (source_of(relation), name) == (limit.source, limit.column)


def _together(
    block: Block, one: Monotone, other: Monotone, derived: Mapping[RelationId, Derived]
) -> list[tuple[Monotone, Monotone]]:
    """A column and the release of its row as values that rise with one column, wherever they come from; else nothing.

    Two keys of a group may be made from one column of its rows, as the bounds of a window are.
    """
    if one.column == other.column:
        return [(one, other)]
    at, to = input_of(one.column), input_of(other.column)
    made = derived.get(block.inputs[at].relation)
    if at != to or made is None or not made.operation.combines_rows:
        return []
    names, result = dict(block.inputs[at].columns), []
    for inner in made.blocks:
        first, second = (dict(inner.outputs).get(names[rising.column]) for rising in (one, other))
        if first is None or second is None or first.monotone is None or second.monotone is None:
            return []
        if first.monotone.column != second.monotone.column:
            return []
        result.append((one.on(first.monotone), other.on(second.monotone)))
    return result

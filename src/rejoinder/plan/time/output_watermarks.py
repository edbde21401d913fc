"""Output watermarks: the time below which a column of a view no longer changes, as formulas.

For a column of a join, it is the minimum of the watermarks of its inputs and of the column in the retained rows. For an
aggregate, only grouping columns have a watermark. In a view with an emit policy, pending changes count, too: the
oldest of them, which is not below the limit that follows from the gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.monotone import Monotone, shift, simplified
from rejoinder.ir.identities import RelationId, ViewRows, is_on_time, source_of
from rejoinder.ir.logical import EMIT_AT, GATE
from rejoinder.plan.blocks.normal_form import Block, Derived
from rejoinder.plan.join.block_bounds import tightest
from rejoinder.plan.join.join_graph import input_of
from rejoinder.plan.rounds.program import Gate, Program
from rejoinder.plan.time.frontier import Frontiers, kept_key
from rejoinder.watermarks.formula import Formula, RetainedMinimum, Watermark, least, lift

Outputs = Mapping[str, Formula]


def outputs_of(program: Program) -> dict[str, Outputs]:
    """Return the watermarks of columns by view; for a window, that of its start."""
    frontiers = Frontiers(program.sources, program.relations, unbounded=True)
    return {view: dict(_of_view(program, view, frontiers)) for view in program.views}


def _of_view(program: Program, view: str, frontiers: Frontiers) -> Iterator[tuple[str, Formula]]:
    block, gates = program.views[view], program.gates_of(view)
    if any(gate.limit is None for gate in gates):  # EMIT EVERY: event times do not follow from the clock
        return
    for name, expression in block.outputs:
        found = None if name in (EMIT_AT, GATE) else frontiers.of_output(ViewRows(view), block, expression)
        if found is not None:
            for gate in gates:
                met, pending = _waiting(gate, block, expression, program.derived), gate.pending.relation
                found = RetainedMinimum(found, met, ViewRows(view), pending, name, kept_key(pending, name, block))
            yield name, found


def _waiting(gate: Gate, block: Block, expression: Expression, derived: Mapping[RelationId, Derived]) -> Formula | None:
    """Return a time below which no pending row has this column, by the limit of the gate; None if there is none."""
    rising, emit_time = expression.monotone, dict(block.outputs)[EMIT_AT].monotone
    assert rising is not None and gate.limit is not None
    if gate.awaits_match and isinstance(gate.limit, Watermark):
        return _by_match(gate.limit, block, rising)
    if emit_time is None:
        return None
    limits = []
    for one, other in _together(block, rising, emit_time, derived):
        back = other.least()
        if back is None:
            return None
        limits.append(lift(gate.limit, simplified((*shift(1), *back, *one.steps))))
    return least(limits) if limits else None


def _by_match(limit: Watermark, block: Block, rising: Monotone) -> Formula | None:
    """Return the same for rows without a match: no bound by the time of the other side has passed them."""
    for each in block.inputs:
        times = [i for i, name in each.columns if _is_clock(each.relation, name, limit)]
        for (later, earlier), steps in tightest(each.on).items():
            if later == rising.column and earlier in times:
                return lift(limit, simplified((*steps, *rising.steps)))
    return None


def _is_clock(relation: RelationId, name: str, limit: Watermark) -> bool:
    return is_on_time(relation) and (source_of(relation), name) == (limit.source, limit.column)


def _together(
    block: Block, one: Monotone, other: Monotone, derived: Mapping[RelationId, Derived]
) -> list[tuple[Monotone, Monotone]]:
    """Return a column and the emit time of its row as functions of one common column; empty if there is none.

    Two keys of a group may be computed from one column of its rows, like the start and end of a window.
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

"""Output watermarks: below which time no change of a view's column comes any more, as far as the state tells.

For a column of a join it is the least of what was received for the column, and of the column in the rows that are still
kept: only they can come out with a row of another input. That is at least as far as the formula of the column's
frontier, which knows how old kept rows can be, not how old they are. An aggregate has watermarks at the bounds of its
groups alone; a view that waits has them for the time that its rows wait by.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoinder.engine.planner import Plan
from rejoinder.engine.state import State
from rejoinder.engine.watermarks import Times
from rejoinder.kernels.expression import Expression
from rejoinder.kernels.ordered import LEAST
from rejoinder.kernels.rising import stepped
from rejoinder.plan.accumulators import Grouping
from rejoinder.plan.catalog import ON_TIME
from rejoinder.plan.frontier import Frontiers, Merged, least, lowered, value_of
from rejoinder.plan.logical import LOCK, RELEASE
from rejoinder.plan.normal import Block
from rejoinder.plan.program import Gate


@dataclass
class Outputs:
    """Works out the watermarks of views from a plan, a state and the watermarks of the sources."""

    plan: Plan
    state: State
    times: Times
    _frontiers: Frontiers = field(init=False)

    def __post_init__(self) -> None:
        program = self.plan.program
        self._frontiers = Frontiers(program.sources, program.relations)

    def of_view(self, view: str) -> dict[str, int]:
        """The watermarks of a view's columns that have one, in the unit of the column; of a window, of its start."""
        block, gates = self.plan.program.views[view], self.plan.program.gates_of(view)
        shown = {name: e for name, e in block.outputs if name not in (RELEASE, LOCK)}
        if any(gate.limit is None for gate in gates):
            return {}  # of who waits for the clock, nothing is known
        found = {name: self._of_output(view, block, e) for name, e in shown.items()}
        release = dict(block.outputs).get(RELEASE)
        # A row that waits for a partner is among those that are kept for one.
        if release is not None and release.rises is not None:
            (gate,) = gates
            found = {name: self._waiting(block, e, release, gate) for name, e in shown.items()}
        return {name: value for name, value in found.items() if value is not None and value != LEAST}

    def _of_output(self, user: str, block: Block, expression: Expression) -> int | None:
        rising = expression.rises
        if rising is None or self._frontiers.of_output(block, expression) is None:
            return None
        i = rising.column
        at = int(i.split(".", 1)[0])
        name = dict(block.inputs[at].columns)[i]
        own = self._of_relation(block.inputs[at].relation, name)
        if own is None or own == LEAST:
            return own
        return stepped(min([own, *self._kept(user, block, at, i)]), rising.steps)

    def _of_relation(self, relation: str, name: str) -> int | None:
        """The watermark of a column of a relation."""
        formula = self._frontiers.of(relation, name)
        if formula is None or relation.endswith(ON_TIME) or isinstance(formula, Merged):
            return None if formula is None else value_of(formula, self.times, LEAST)
        if relation in self.plan.program.views:
            return self.of_view(relation).get(name, LEAST)
        made = self.plan.program.derived[relation]
        outputs = [(block, dict(block.outputs)[name]) for block in made.blocks]
        known = [self._of_output(relation, block, e) for block, e in outputs if e.columns]
        values = [value for value in known if value is not None]
        return min(values) if values and len(values) == len(known) else None

    def _kept(self, user: str, block: Block, at: int, i: str) -> list[int]:
        """The smallest times in what is kept of an input for changes of the others."""
        starts = [start for start, each in enumerate(block.inputs) if start != at and not each.arrival]
        limits = [self._frontiers.limit(block, start, i) for start in starts]
        known = [limit for limit in limits if limit is not None]
        if not known:
            return []
        bound = value_of(least(known), self.times, LEAST)
        relation, name = block.inputs[at].relation, dict(block.inputs[at].columns)[i]
        arrangements = [
            a.id
            for a in self.plan.dataflow.arrangements
            if a.relation == relation and user in self.plan.dataflow.users[a.id]
        ]
        spans = [
            ref.span(name)
            for a in arrangements
            for part in self.state.arrangements.get(a, ())
            for ref in part.refs
            if ref.rows
        ]
        found = [span for span in spans if span is not None]
        if len(found) < len(spans):
            return [bound]  # forgotten by another column: this one can be as old as the bounds allow
        return [max(bound, low) for low, high in found if high >= bound]

    def _waiting(self, block: Block, expression: Expression, release: Expression, gate: Gate) -> int | None:
        """The watermark of a column of a view whose rows wait: that of the time they wait by, or made from it."""
        final, own = self._frontiers.of_output(block, release), self._frontiers.of_output(block, expression)
        if final is None or own is None or not self._together(block, expression, release):
            return None
        value = value_of(own, self.times, LEAST)
        if gate.limit == lowered(final, 1):  # whatever is below its frontier is out
            return value
        opened = value_of(gate.limit, self.times, LEAST) if gate.limit is not None else LEAST
        moved = None if release.rises is None else release.rises.span
        if opened == LEAST or expression.rises is None or moved is None or moved[0] != moved[1]:
            return None
        return min(value, stepped(opened - moved[0] + 1, expression.rises.steps))

    def _together(self, block: Block, expression: Expression, release: Expression) -> bool:
        """Whether a column rises with the release of its row: no row that waits is below its frontier then."""
        one, other = expression.rises, release.rises
        if one is None or other is None:
            return False
        if one.column == other.column:
            return other.span is not None and other.span[0] == other.span[1]
        at, to = (int(rising.column.split(".", 1)[0]) for rising in (one, other))
        made = self.plan.program.derived.get(block.inputs[at].relation)
        if at != to or made is None or not isinstance(made.operation, Grouping):
            return False
        names = dict(block.inputs[at].columns)
        for inner in made.blocks:
            first, second = (dict(inner.outputs).get(names[rising.column]) for rising in (one, other))
            if first is None or second is None or first.rises is None or second.rises is None:
                return False
            same = first.rises.column == second.rises.column and first.rises.steps[:1] == second.rises.steps[:1]
            if not same:
                return False
        return True

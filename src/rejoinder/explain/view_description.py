"""The plan of a view as text, for EXPLAIN: its derived relations, paths, gates and arrangements."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from rejoinder.explain.bound_certificate import Certificate
from rejoinder.explain.formula_text import passed_text
from rejoinder.ir.expressions.monotone import shift
from rejoinder.ir.identities import NEVER, UNIT, PendingRows, RelationId, SourceRows, ViewRows, source_of
from rejoinder.ir.logical import EMIT_AT
from rejoinder.plan.blocks.normal_form import Block, Derived
from rejoinder.plan.join.join_graph import inputs_of
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.dataflow import Path, PathHop, User
from rejoinder.plan.planning import Plan
from rejoinder.plan.rounds.labels import Labels, shown, written
from rejoinder.plan.rounds.program import Gate
from rejoinder.sql.types.spark_types import spark_name
from rejoinder.state.flow_state import State
from rejoinder.state.watermarks import Times

_JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "semi": "SEMI JOIN", "anti": "ANTI JOIN"}


def _rows_of(variant: SourceRows) -> str:
    """Describe which rows of a source a relation has."""
    text = f"rows of {variant.source}"
    if variant.start is not None:
        text += f" from epoch {variant.start + 1} on"
    if variant.time is not None:
        text += f" since {datetime(1970, 1, 1) + timedelta(microseconds=variant.time)}"
    if variant.on_time:
        text += " that are not late" if variant.late == NEVER else f" that are not late after epoch {variant.late}"
    return text


def describe(plan: Plan, view: str, state: State, times: Times) -> str:
    """Return the plan of a view as text: derived relations, paths, then arrangements and which views share them."""
    return "\n".join(_Text(plan, view, state, times).lines())


class _Text:
    def __init__(self, plan: Plan, view: str, state: State, times: Times) -> None:
        self.dataflow, self.program = plan.dataflow, plan.program
        self.view, self.existing = view, set(state.arrangements)
        self.labels = Labels(plan.program.derived)
        self.certificate = Certificate(plan, state, times, view, self.labels)
        self.names = self._feeding()

    def _feeding(self) -> list[RelationId]:
        """Return the derived relations that the view reads, inner ones first."""
        names: dict[RelationId, None] = {}

        def visit(blocks: Iterable[Block]) -> None:
            for relation in (block_input.relation for block in blocks for block_input in block.inputs):
                if relation in self.program.derived and relation not in names:
                    visit(self.program.derived[relation].blocks)
                    names[relation] = None

        visit((self.program.views[self.view],))
        return list(names)

    def _on_time(self) -> list[str]:
        """Describe the sources that are read without their late rows, or from a start."""
        blocks = [*(b for name in self.names for b in self.program.derived[name].blocks), self.program.views[self.view]]
        read = dict.fromkeys(each.relation for block in blocks for each in block.inputs)
        some = [rows for rows in read if isinstance(rows, SourceRows) and rows != SourceRows(rows.source)]
        return [f"  {rows} = {_rows_of(rows)}" for rows in some]

    def lines(self) -> list[str]:
        columns = ", ".join(f"{f.name} {spark_name(f.type)}" for f in self.dataflow.views[self.view])
        lines = [f"view {self.view} ({columns})"]
        lines += self._on_time()
        for name in self.names:
            derived = self.program.derived[name]
            lines.append(f"  {self.labels.relation(name)} = {self._what(derived)}")
            lines += [f"  {line}" for line in self._paths(name)]
        lines += self._paths(ViewRows(self.view))
        lines += self._emission()
        lines += [f"  {line}" for line in self.certificate.never()]
        lines += self._arrangements()
        return [*lines, f"  rounds {len(self.dataflow.rounds)}"]

    # -- derived relations --------------------------------------------------------------------------------------------

    def _what(self, derived: Derived) -> str:
        """Describe a derived relation."""
        changing = [block for block in derived.blocks if block.inputs[0].relation != UNIT]
        blocks = [self._block(block) for block in changing] or ["one row"]
        columns = [self.labels.column(derived.id, name) for name in derived.schema.names]
        return derived.operation.describe(derived, columns, blocks)

    def _block(self, block: Block) -> str:
        """Describe the joined inputs of a block, and its filters."""
        first, *others = block.inputs
        text = self.labels.relation(first.relation)
        for each in others:
            text += f" {_JOINS[each.mode]} {self.labels.relation(each.relation)}{' at arrival' if each.arrival else ''}"
        filters = [p.expression for p in block.predicates if p.equality is None or len(inputs_of(p.expression)) < 2]
        return text + (f" where {self.labels.conditions(filters, block)}" if filters else "")

    # -- paths --------------------------------------------------------------------------------------------------------

    def _paths(self, name: RelationId) -> list[str]:
        lines = []
        for path in self.dataflow.paths:
            if path.view == name:
                lines.append(f"  {self._start(path)}")
                lines += [f"    → {self._hop(hop)}" for hop in path.hops]
        return lines

    def _start(self, path: Path) -> str:
        """Describe the changes at the start of a path: of rows, of keys, or of match status."""
        text = f"changes of {self.labels.relation(path.start)}"
        if path.updates_match_status:
            status = "of which rows have a match"
            text = f"{text} and {status} in it" if path.mode == "left" else text.replace("of", f"{status} in", 1)
        elif path.mode in ("semi", "anti"):
            text = f"changes of the keys of {self.labels.relation(path.start)}"
        elif path.mode == "left":
            text += f" and of {'where its versions begin' if path.covers else 'its keys'}"
        return text + (f", where {path.condition}" if path.condition else "")

    def _hop(self, hop: PathHop) -> str:
        arrangement = next(a for a in self.dataflow.arrangements if a.id == hop.arrangement)
        text = self.labels.arrangement(arrangement) + ("" if hop.mode == "inner" else f" ({hop.mode})")
        if hop.key:
            text += f" by {hop.key}"
        elif not hop.within:
            text += ", any row" if hop.mode in ("semi", "anti") else ", every row"
        text += f", {hop.within}" if hop.within else ""
        text += f" where {hop.filter}" if hop.filter else ""
        text += f", if {hop.guard}" if hop.guard else ""
        if hop.arrival:
            text += ", as it is at arrival"
        else:
            text += f", {'with' if hop.after else 'without'} this epoch"
        return text + (f", keeping {hop.condition}" if hop.condition else "")

    def _emission(self) -> list[str]:
        """Describe when the view emits changes, unless it does so in each epoch."""
        gates = self.program.gates_of(self.view)
        if not gates:
            return []
        if gates[0].interval:
            return [f"  changes are emitted every {gates[0].interval / 1_000_000:g} s of processing time, netted"]
        if len(gates) > 1:
            listed = " or ".join(f"{source}.{column}" for gate in gates for source, column in gate.origins)
            return [f"  a row without a match is emitted when the watermark of {listed} excludes a later match"]
        return [f"  a row is emitted when {self._passed(gates[0])}"]

    def _passed(self, gate: Gate) -> str:
        """Describe the condition of a gate: its limit has passed a time, or reached the end of a window."""
        block, sources = self.program.views[self.view], self.program.sources
        emit_time, names = dict(block.outputs)[EMIT_AT], self.labels.names(block)
        rising = emit_time.monotone
        is_next = rising is None or rising.steps[-1:] == shift(1)
        time = written(emit_time)
        if time is None and rising is not None and rising.steps == shift(1):
            time = names[rising.column]
        assert gate.limit is not None
        return passed_text(
            time or shown(emit_time, names),
            gate.limit,
            lambda source, name: sources[source].schema.field(name).type,
            at=not is_next,
        )

    # -- arrangements -------------------------------------------------------------------------------------------------

    def _arrangements(self) -> list[str]:
        names = {ViewRows(self.view), *self.names}
        used = [a for a in self.dataflow.arrangements if names & set(self.dataflow.users[a.id])]
        lines = ["  arrangements"]
        for arrangement in used:
            others = self._views([user for user in self.dataflow.users[arrangement.id] if user not in names])
            shared = f", shared with {', '.join(others)}" if others else ""
            state = "exists" if arrangement.id in self.existing else "new"
            lines.append(f"    {self.labels.arrangement(arrangement)} ({state}{shared}){self._content(arrangement)}")
            lines += [f"      {line}" for line in self.certificate.lines(arrangement)]
        if not used:
            lines.append("    none: the view is computed from each change alone")
        return lines

    def _views(self, users: list[User]) -> list[str]:
        return [name for name in self.program.named(users) if name != self.view]

    def _content(self, arrangement: Arrangement) -> str:
        """Describe the content of an arrangement, unless it is the rows that are looked up."""
        if isinstance(arrangement.relation, PendingRows):
            return ": pending changes"
        if arrangement.is_lean:
            source = self.program.sources[source_of(arrangement.relation)]
            names = arrangement.schema.names
            return f": columns {', '.join(names)}" if len(names) < len(source.schema) else ""
        made = self.program.maker(arrangement.relation)
        kept = () if made is None else made.operation.state(made, self.program)
        texts = [state.text for state in kept if state.arrangement.id == arrangement.id]
        return f": {texts[0]}" if any(texts) else ""

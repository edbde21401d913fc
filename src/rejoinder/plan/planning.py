"""Plan views one after the other: normal form, gates, and at the end the rounds of all of them.

The queries are bound already: by the binder, or built as trees in Python (`rejoinder.core`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.identities import RelationId
from rejoinder.ir.logical import Query
from rejoinder.ir.source_reading import EVERYTHING, Reading
from rejoinder.plan.blocks.normal_form import Block, Derived, Normalized
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.normalize import normalize
from rejoinder.plan.operations.operation import depends_on_past
from rejoinder.plan.operations.side_outputs import refuse_missing
from rejoinder.plan.operations.union import as_relation
from rejoinder.plan.physical.dataflow import Dataflow
from rejoinder.plan.physical.steps import OnTime
from rejoinder.plan.rounds.program import Gate, Program, program_of
from rejoinder.plan.schedule.dataflow_builder import Builder
from rejoinder.plan.time.finality import final_by_time, only_grows, with_finality
from rejoinder.plan.time.frontier import Frontiers
from rejoinder.plan.time.gates import gates_of
from rejoinder.plan.time.imposed_watermarks import imposing_scans, with_imposed
from rejoinder.plan.time.output_watermarks import Outputs, outputs_of
from rejoinder.plan.time.retention import is_timed, on_time, refuse_unbounded, refuse_unfinished
from rejoinder.plan.unnest.unread_columns import without_unread_columns
from rejoinder.watermarks.formula import Formula, Persisted, persisted_in


@dataclass(frozen=True)
class Plan:
    """The dataflow of an epoch, the program that it implements, and the output watermarks of views."""

    program: Program
    dataflow: Dataflow
    outputs: Mapping[str, Outputs]

    @cached_property
    def persisted(self) -> tuple[Persisted, ...]:
        """Return the formulas whose values are persisted: inner ones first, those of retention before the others."""
        formulas: list[Formula] = [limit.below for kept in self.dataflow.retentions.values() for limit in kept.bounds]
        formulas += [formula for step in self.dataflow.steps() if isinstance(step, OnTime) for _, formula in step.times]
        formulas += [gate.limit for gate in self.program.gates if gate.limit is not None]
        formulas += [formula for columns in self.outputs.values() for formula in columns.values()]
        return tuple(dict.fromkeys(each for formula in formulas for each in persisted_in(formula)))


def _inside_gates(program: Program) -> Iterator[Gate]:
    """The gates of operations that the clock drives."""
    for made in program.derived.values():
        pending = made.operation.clock_events(made)
        if pending is not None:
            yield Gate(str(made.id), pending, 1, is_inside=True)


class Planning:
    """Collects the views of a program. A view is added after those that it reads."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._declared = dict(sources)
        self._sources = self._declared
        self._imposers: dict[str, str] = {}
        self._blocks: dict[str, tuple[Block, Mapping[RelationId, Derived]]] = {}
        self._gates: list[Gate] = []
        self._relations: dict[RelationId, Derived] = {}
        self._growing: set[str] = set()
        self.not_inlined: list[str] = []
        """The views that cannot be computed again from their inputs: their readers scan them instead of inlining."""

    def add(self, name: str, query: Query, reading: Reading = EVERYTHING, *, is_capped: bool = False) -> None:
        """Add a view in normal form. Raises a `PlanningError` if it is not supported.

        `is_capped`: the caller caps the retained rows, so that EMIT FINAL does not need a bound for each input.
        """
        self._sources = with_imposed(self._sources, name, query.root, self._imposers)
        sources, relations = self._sources, self._relations
        if only_grows(query.root, sources, self._growing):
            self._growing.add(name)
        normal = self._normal(query, reading, is_capped=is_capped)
        self._blocks[name] = (normal.block, normal.derived)
        relations |= normal.derived
        past = is_timed(normal, sources, relations) or depends_on_past(normal.derived.values())
        if normal.emission is None and (past or reading.starts):
            self.not_inlined.append(name)
        view = as_relation(name, normal.block)
        relations[view.id] = view
        if normal.emission is not None:
            self._gates += gates_of(name, normal.block, relations, normal.emission, sources)

    def plan(self, catalog: Catalog, statistics: Mapping[str, Statistics]) -> Plan:
        """Build the rounds of all views that were added; `catalog` has the sources, indexes and sinks."""
        program = replace(program_of(catalog, self._blocks, statistics), gates=tuple(self._gates))
        program = replace(program, gates=(*program.gates, *_inside_gates(program)))
        program = replace(program, sources={name: self._sources[name] for name in program.sources})
        dataflow = Builder(program).build()
        refuse_missing(catalog, program, dataflow.views)
        return Plan(program, dataflow, outputs_of(program))

    def _normal(self, query: Query, reading: Reading, *, is_capped: bool) -> Normalized:
        """Return the normal form of a view's query. With bounded state or an emit policy, late rows are left out.

        Such a view reads the on-time rows of sources that declare a watermark, or on which it imposes an order.
        """
        sources, relations, emission = self._sources, self._relations, query.emission
        if emission is not None and emission.policy == "final" and emission.emit_time is None:
            plain = with_finality(query, sources, self._growing)
            normal = self._on_time(plain or query, reading)
            if not is_capped:
                refuse_unbounded(normal, sources, relations)
            if plain is not None:
                return normal
            return final_by_time(normal, Frontiers(sources, {**relations, **normal.derived}))
        if on_time(self._declared) or any(imposing_scans(query.root)):
            normal = self._on_time(query, reading)
            if normal.emission is not None and normal.emission.policy == "final":
                refuse_unfinished(normal, sources, relations)
            waits = normal.emission is not None and normal.emission.emit_time is not None
            if waits or is_timed(normal, sources, relations):
                return normal
        return _normalized(query, reading=reading)

    def _on_time(self, query: Query, reading: Reading) -> Normalized:
        """Return the normal form that leaves late rows out.

        The match status of a left row is computed from its retained matches. If these would never expire, the matched
        left rows are kept as a relation instead.
        """
        declared = on_time(self._declared)
        by_matches = _normalized(query, declared, reading, imposed=True)
        if is_timed(by_matches, self._sources, self._relations):
            return by_matches
        persisted = _normalized(query, declared, reading, imposed=True, by_matches=False)
        return persisted if is_timed(persisted, self._sources, self._relations) else by_matches


def _normalized(
    query: Query,
    on_time: frozenset[str] = frozenset(),
    reading: Reading = EVERYTHING,
    *,
    imposed: bool = False,
    by_matches: bool = True,
) -> Normalized:
    return normalize(without_unread_columns(query), on_time, reading, imposed=imposed, by_matches=by_matches)

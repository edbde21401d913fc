"""Plan views one after the other: normal form, gates, and at the end the rounds of all of them.

The queries are bound already: by the binder, or built as trees in Python (`rejoinder.core`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.identities import RelationId
from rejoinder.ir.logical import Query
from rejoinder.ir.source_reading import EVERYTHING, Reading
from rejoinder.plan.blocks.normal_form import Block, Derived, Normalised
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.normalize import normalise
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
from rejoinder.watermarks.formula import Formula, Persisted, persisted_in


@dataclass(frozen=True)
class Plan:
    """The dataflow of an epoch, the program that it came from, and the watermarks of the views' columns."""

    program: Program
    dataflow: Dataflow
    outputs: Mapping[str, Outputs]

    @cached_property
    def persisted(self) -> tuple[Persisted, ...]:
        """The formulas whose values are persisted, inner ones first; what is forgotten by, before the others."""
        formulas: list[Formula] = [limit.below for kept in self.dataflow.retentions.values() for limit in kept.limits]
        formulas += [formula for step in self.dataflow.steps() if isinstance(step, OnTime) for _, formula in step.times]
        formulas += [gate.limit for gate in self.program.gates if gate.limit is not None]
        formulas += [formula for columns in self.outputs.values() for formula in columns.values()]
        return tuple(dict.fromkeys(each for formula in formulas for each in persisted_in(formula)))


class Planning:
    """Views as they are added to a program, each after those that it reads."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._declared = dict(sources)
        self._sources = self._declared
        self._imposers: dict[str, str] = {}
        self._blocks: dict[str, tuple[Block, Mapping[RelationId, Derived]]] = {}
        self._gates: list[Gate] = []
        self._relations: dict[RelationId, Derived] = {}
        self._growing: set[str] = set()
        self.forgetting: list[str] = []
        """The views whose rows are nowhere else: whoever reads one reads its relation, not its query."""

    def add(self, name: str, query: Query, reading: Reading = EVERYTHING, *, is_capped: bool = False) -> None:
        """Bring a view to normal form. Raises a `PlanningError` if it cannot be kept.

        `is_capped`: the caller caps the rows that are kept, so that EMIT FINAL needs no bound for each input.
        """
        self._sources = with_imposed(self._sources, name, query.root, self._imposers)
        sources, relations = self._sources, self._relations
        if only_grows(query.root, sources, self._growing):
            self._growing.add(name)
        normal = self._normal(query, reading, is_capped=is_capped)
        self._blocks[name] = (normal.block, normal.derived)
        relations |= normal.derived
        past = is_timed(normal, sources, relations) or depends_on_past(normal.derived.values())
        if normal.emission is None and (past or reading.starts):  # its rows are nowhere else
            self.forgetting.append(name)
        view = as_relation(name, normal.block)
        relations[view.id] = view
        if normal.emission is not None:
            self._gates += gates_of(name, normal.block, relations, normal.emission, sources)

    def plan(self, catalog: Catalog, statistics: Mapping[str, Statistics]) -> Plan:
        """Build the rounds of all views that were added; `catalog` has the sources, indexes and sinks."""
        program = replace(program_of(catalog, self._blocks, statistics), gates=tuple(self._gates))
        program = replace(program, sources={name: self._sources[name] for name in program.sources})
        dataflow = Builder(program).build()
        refuse_missing(catalog, program, dataflow.views)
        return Plan(program, dataflow, outputs_of(program))

    def _normal(self, query: Query, reading: Reading, *, is_capped: bool) -> Normalised:
        """The normal form of a view's query. With bounded state or delayed emission, late rows are left out.

        Such a view reads on time what declares a watermark, and what it imposes an order on itself.
        """
        sources, relations, emission = self._sources, self._relations, query.emission
        if emission is not None and emission.policy == "final" and emission.release is None:
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
            waits = normal.emission is not None and normal.emission.release is not None
            if waits or is_timed(normal, sources, relations):
                return normal
        return normalise(query, reading=reading)

    def _on_time(self, query: Query, reading: Reading) -> Normalised:
        """The normal form that leaves late rows out.

        The match status of a row follows from its partners as long as they are kept for as long as another can come;
        if that is for ever, the row is kept with its match status instead.
        """
        declared = on_time(self._declared)
        by_partners = normalise(query, declared, reading, imposed=True)
        if is_timed(by_partners, self._sources, self._relations):
            return by_partners
        persisted = normalise(query, declared, reading, imposed=True, by_partners=False)
        return persisted if is_timed(persisted, self._sources, self._relations) else by_partners

"""From the catalog to the dataflow: bind every view, bring it to normal form, build the rounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from rejoinder.errors import Unsupported
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.logical import Query
from rejoinder.ir.source_variants import Reading
from rejoinder.plan.blocks.normal_form import Block, Derived, Normalised
from rejoinder.plan.join.delta_paths import Statistics
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
from rejoinder.sql.bind.binder import bind_view
from rejoinder.sql.bind.computed_columns import with_expressions
from rejoinder.sql.parse.text_caps import with_stack
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


def plan(catalog: Catalog, statistics: Mapping[str, Statistics]) -> Plan:
    """Plan a catalog. Raises a `PlanningError` if a view cannot be kept."""
    return with_stack([view.query for view in catalog.views], _plan, catalog, statistics)


def _plan(catalog: Catalog, statistics: Mapping[str, Statistics]) -> Plan:
    blocks: dict[str, tuple[Block, Mapping[str, Derived]]] = {}
    declared = {source.name: with_expressions(source) for source in catalog.sources}
    sources, imposers = declared, dict[str, str]()
    gates: list[Gate] = []
    relations: dict[str, Derived] = {}
    forgetting: list[str] = []
    growing: set[str] = set()
    for view in catalog.views:
        query = bind_view(view, catalog, forgetting)
        sources = with_imposed(sources, view.name, query.root, imposers)
        if only_grows(query.root, sources, growing):
            growing.add(view.name)
        normal = _normal(query, sources, on_time(declared), relations, growing, view.reading)
        blocks[view.name] = (normal.block, normal.derived)
        relations |= normal.derived
        past = is_timed(normal, sources, relations) or depends_on_past(normal.derived.values())
        if normal.emission is None and (past or view.reading.starts):  # its rows are nowhere else
            forgetting.append(view.name)
        relations[view.name] = as_relation(view.name, normal.block)
        if normal.emission is not None:
            gates += gates_of(view.name, normal.block, relations, normal.emission, sources)
    program = replace(program_of(catalog, blocks, statistics), gates=tuple(gates))
    program = replace(program, sources={name: sources[name] for name in program.sources})
    dataflow = Builder(program).build()
    refuse_missing(catalog, program, dataflow.views)
    return Plan(program, dataflow, outputs_of(program))


def _normal(
    query: Query,
    sources: Mapping[str, Source],
    timely: frozenset[str],
    relations: Mapping[str, Derived],
    growing: Collection[str],
    reading: Reading,
) -> Normalised:
    """The normal form of a view's query. One that forgets or waits leaves late rows out; any other takes all rows.

    It reads on time what declares a watermark (`timely`), and what it imposes an order on itself.
    """
    if query.emission is not None and query.emission.policy == "final" and query.emission.release is None:
        plain = with_finality(query, sources, growing)
        normal = _timely(plain or query, sources, timely, relations, reading)
        refuse_unbounded(normal, sources, relations)
        return (
            normal if plain is not None else final_by_time(normal, Frontiers(sources, {**relations, **normal.derived}))
        )
    if timely or any(imposing_scans(query.root)):
        normal = _timely(query, sources, timely, relations, reading)
        waits = normal.emission is not None and normal.emission.release is not None
        if normal.emission is not None and normal.emission.policy == "final":
            refuse_unfinished(normal, sources, relations)
        if waits or is_timed(normal, sources, relations):
            return normal
    return normalise(query, reading=reading)


def _timely(
    query: Query,
    sources: Mapping[str, Source],
    timely: frozenset[str],
    relations: Mapping[str, Derived],
    reading: Reading,
) -> Normalised:
    """The normal form that leaves late rows out.

    To judge a row, its partners must be there as long as a further one can come; if that is for ever, it is persisted
    that the row has one.
    """
    judging = normalise(query, timely, reading, imposed=True)
    if is_timed(judging, sources, relations):
        return judging
    remembering = normalise(query, timely, reading, imposed=True, judges=False)
    return remembering if is_timed(remembering, sources, relations) else judging


def refuse_products(
    new: Plan,
    present: Dataflow,
    statistics: Mapping[str, Statistics],
    max_pairs: int,
    net_rows: Callable[[str], int],
) -> None:
    """Refuse a new view in which every row of one input meets every row of another, if they are too many already.

    Statistics count rows that are gone until a merge nets them. `net_rows` counts the rows of an arrangement that are
    left; it is called only where the statistics alone would refuse.
    """
    rows: dict[str, int] = {}
    for arrangement in present.arrangements:
        found = statistics.get(arrangement.id)
        rows[arrangement.relation] = max(rows.get(arrangement.relation, 0), found.rows if found else 0)
    for path in new.dataflow.paths:
        for hop in path.hops:
            pairs = rows.get(path.start, 0) * rows.get(hop.relation, 0)
            tested = {"semi", "anti"} & {hop.mode, path.mode}
            if hop.key or hop.within or tested or pairs <= max_pairs or path.view in present.views:
                continue
            for relation in {path.start, hop.relation}:
                kept = [a.id for a in present.arrangements if a.relation == relation]
                rows[relation] = max((net_rows(name) for name in kept), default=0)
            if rows[path.start] * rows[hop.relation] <= max_pairs:
                continue
            view = ", ".join(new.program.named([path.view]))
            raise Unsupported(
                f"`{view}` would pair every row of `{path.start}` with every row of `{hop.relation}`",
                detail=f"{rows[path.start]:,} × {rows[hop.relation]:,} rows, and the limit is {max_pairs:,} pairs",
                hint="add a condition of the form a.x = b.y, filter the inputs, or raise `max_pairs` of the flow",
            )

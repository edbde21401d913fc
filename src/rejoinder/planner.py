"""From the catalog to the dataflow: bind every view and plan it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rejoinder.errors import Unsupported
from rejoinder.ir.catalog import Catalog, View
from rejoinder.ir.identities import RelationId
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.physical.dataflow import Dataflow
from rejoinder.plan.planning import Plan, Planning
from rejoinder.sql.bind.bind_query import bind_view
from rejoinder.sql.bind.computed_columns import with_expressions
from rejoinder.sql.parse.text_caps import with_stack


def plan(catalog: Catalog, statistics: Mapping[str, Statistics]) -> Plan:
    """Plan a catalog. Raises a `PlanningError` if a view cannot be kept."""
    return with_stack([view.query for view in catalog.views], _plan, catalog, statistics)


def _plan(catalog: Catalog, statistics: Mapping[str, Statistics]) -> Plan:
    planning = Planning({source.name: with_expressions(source, catalog.time_zone) for source in catalog.sources})
    for position, view in enumerate(catalog.relations):
        if isinstance(view, View):
            earlier = replace(catalog, relations=catalog.relations[:position])
            planning.add(view.name, bind_view(view, earlier, planning.not_inlined), view.reading)
    return planning.plan(catalog, statistics)


def refuse_products(
    new: Plan,
    present: Dataflow,
    statistics: Mapping[str, Statistics],
    max_pairs: int,
    net_rows: Callable[[str], int],
) -> None:
    """Raise `Unsupported` for a new view that joins every row with every row, if there are too many pairs already.

    Statistics also count retracted rows until compaction removes them. `net_rows` counts the remaining rows of an
    arrangement; it is called only if the statistics alone would refuse the view.
    """
    rows: dict[RelationId, int] = {}
    for arrangement in present.arrangements:
        found = statistics.get(arrangement.id)
        rows[arrangement.relation] = max(rows.get(arrangement.relation, 0), found.rows if found else 0)
    for path in new.dataflow.paths:
        for hop in path.hops:
            pairs = rows.get(path.start, 0) * rows.get(hop.relation, 0)
            tested = {"semi", "anti"} & {hop.mode, path.mode}
            if hop.key or hop.within or tested or pairs <= max_pairs or str(path.view) in present.views:
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

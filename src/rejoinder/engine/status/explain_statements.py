"""EXPLAIN and SHOW: plans, definitions, arrangements, sinks and watermarks of a flow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.connectors.registry import sink_side
from rejoinder.engine.engine import Engine
from rejoinder.engine.hydration.view_starts import starts_of
from rejoinder.engine.status.watermark_status import blocker_of, watermark_rows
from rejoinder.engine.version import Version
from rejoinder.errors import Unsupported
from rejoinder.explain.view_description import describe
from rejoinder.formats.text.row_text import length_text, plain
from rejoinder.ir.catalog import Sink, Source, View
from rejoinder.ir.user_functions import UserFunction
from rejoinder.kernels.arrow.ordered import LEAST, as_column
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.planning import Plan
from rejoinder.planner import plan
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.parse.text_caps import with_stack
from rejoinder.sql.statements.query_text import calls_function
from rejoinder.sql.types.spark_types import spark_name
from rejoinder.watermarks.formula import value_of


def explain(engine: Engine, target: str) -> str:
    """Return the plan of a view, or of a query as if it were a view. Raises a `PlanningError`."""
    version = engine.version
    return with_stack([target, *(view.query for view in version.catalog.views)], _explain, version, target)


def _explain(version: Version, target: str) -> str:
    planned, name = planned_for(version, target)
    return describe(planned, name, version.state, version.times)


def planned_for(version: Version, target: str) -> tuple[Plan, str]:
    """Return the plan of a view, or of a query as if it were a view, and the name of the view in that plan."""
    text = target.strip().rstrip(";")
    relation = version.catalog.find(text.strip("`"))
    if isinstance(relation, Source):
        raise Unsupported(
            f"`{relation.name}` is a source and has no plan",
            detail=f"EXPLAIN {text}",
            hint="EXPLAIN a view or a query; SHOW ARRANGEMENTS shows what is kept of a source",
        )
    if relation is not None:
        return version.plan, relation.name
    if len(text.split()) == 1:
        version.catalog.get(text.strip("`"))  # raises `UnknownName` with near misses: one word is not a query
    query = bind(text, version.catalog)
    view = View("query", text, query.schema)
    catalog = replace(version.catalog, relations=(*version.catalog.relations, view), sinks=())
    return plan(catalog, version.state.statistics()), "query"


def show(engine: Engine, what: str) -> list[dict[str, Any]]:
    """Return the rows of SHOW ARRANGEMENTS, FUNCTIONS, SINKS, VIEWS, SOURCES (or TABLES), or WATERMARKS."""
    version = engine.version
    if what == "ARRANGEMENTS":
        return [_arrangement(version, arrangement) for arrangement in version.dataflow.arrangements]
    if what == "VIEWS":
        return [_view(version, view) for view in version.catalog.views]
    if what == "FUNCTIONS":
        return [_function(version, function) for function in version.catalog.functions]
    if what == "SINKS":
        return [_sink(version, sink) for sink in version.catalog.sinks]
    if what == "WATERMARKS":
        return watermark_rows(engine)
    read = set(version.dataflow.scans)
    return [
        {
            "source": s.name,
            "kind": s.kind,
            "format": s.format,
            "columns": _columns(s),
            "read": s.name in read,
            "retain": _retained(s),
        }
        for s in version.catalog.sources
    ]


def _retained(source: Source) -> str | None:
    """Return the RETAIN clause of a source as SQL text; None if it has none."""
    if source.retained is None:
        return "ALL" if source.retains_all else None
    is_counted = all(pa.types.is_integer(source.schema.field(name).type) for name in source.watermarks)
    return str(source.retained) if is_counted else f"INTERVAL {length_text(source.retained).upper()}"


def _view(version: Version, view: View) -> dict[str, Any]:
    """Return a row of SHOW VIEWS: `blocked_by` is the watermark that it waits for, `late` its late rows by source."""
    blocker = blocker_of(version, view.name)
    blocked_by = None if blocker is None else f"{blocker.source}.{blocker.column}"
    if blocker is not None and len(version.watermarks.sources.get(blocker.source, {}).get("inputs", ())) > 1:
        blocked_by = f"{blocked_by}, partition {blocker.partition}"
    return {
        "view": view.name,
        "columns": _columns(view),
        "query": view.query,
        "watermarks": output_watermarks(version, view.name),
        "blocked_by": blocked_by,
        "late": dict(version.watermarks.late.get(view.name, {})),
        "starts_at": starts_of(version.catalog, view),
    }


def output_watermarks(version: Version, view: str) -> dict[str, Any]:
    """Return the watermarks of a view's columns, as values of their types. That of a window is of its start."""
    schema = version.dataflow.views[view]
    result = {}
    for name, formula in version.plan.outputs[view].items():
        kind, value = schema.field(name).type, value_of(formula, version.times, LEAST)
        if value == LEAST:
            continue
        time = kind.field("start").type if pa.types.is_struct(kind) else kind
        result[name] = plain(as_column(np.array([value]), time)[0].as_py())
    return result


def _sink(version: Version, sink: Sink) -> dict[str, Any]:
    """Return a row of SHOW SINKS: options without secrets, and the last delivered epoch; None before the first."""
    options = sink_side(sink).shown_options(sink, readable(version.catalog, sink.view).schema)
    delivered = version.delivered.get(version.sinks[sink.name].identity)
    return {
        "sink": sink.name,
        "view": sink.view,
        "format": sink.format,
        "options": ", ".join(f"{name} '{value}'" for name, value in options.items()),
        "delivered": None if delivered is None else delivered.epoch,
    }


def _function(version: Version, function: UserFunction) -> dict[str, Any]:
    """Return a row of SHOW FUNCTIONS: `used_by` are the views that call it."""
    return {
        "function": function.name,
        "kind": function.kind,
        "signature": function.signature,
        "reference": function.reference,
        "options": ", ".join(f"{name} '{value}'" for name, value in function.options.items()),
        "used_by": [view.name for view in version.catalog.views if calls_function(view.query, function)],
    }


def _arrangement(version: Version, arrangement: Arrangement) -> dict[str, Any]:
    name = arrangement.id
    parts = version.state.arrangements.get(name, ())
    made = version.plan.program.maker(arrangement.relation)
    own = () if made is None else made.operation.state(made, version.plan.program)
    content = next((state.content for state in own if state.arrangement.id == name), "rows")
    return {
        "name": name,
        "relation": str(arrangement.relation),
        "key": arrangement.key.text,
        "kind": content,
        "rows": sum(part.rows for part in parts),
        "bytes": sum(part.bytes for part in parts),
        "runs": max((part.runs for part in parts), default=0),
        "used_by": version.plan.program.named(version.dataflow.users[name]),
    }


def _columns(relation: Source | View) -> str:
    return ", ".join(f"{field.name} {spark_name(field.type)}" for field in relation.schema)

"""EXPLAIN and SHOW: what is kept, for whom, and the way that changes take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.connectors.message_values import Values
from rejoinder.engine.engine import Engine
from rejoinder.engine.hydration.view_starts import starts_of
from rejoinder.engine.status.watermark_status import holder_of, watermark_rows
from rejoinder.errors import Unsupported
from rejoinder.explain.view_description import describe
from rejoinder.ir.catalog import Catalog, Sink, Source, View
from rejoinder.kernels.arrow.ordered import LEAST, as_column
from rejoinder.planner import plan
from rejoinder.secret_options import redacted
from rejoinder.sql.bind.binder import bind
from rejoinder.sql.definitions.message_definition import written_columns
from rejoinder.sql.parse.text_caps import with_stack
from rejoinder.sql.types.spark_types import spark_name
from rejoinder.state.renderings import plain
from rejoinder.state.row_text import length_text
from rejoinder.watermarks.formula import value_of


def explain(engine: Engine, target: str) -> str:
    """The plan of a view, or of a query as if it were one."""
    return with_stack([target, *(view.query for view in engine.catalog.views)], _explain, engine, target)


def _explain(engine: Engine, target: str) -> str:
    words = target.strip().rstrip(";")
    found = engine.catalog.find(words.strip("`"))
    if isinstance(found, Source):
        raise Unsupported(
            f"`{found.name}` is a source and has no plan",
            detail=f"EXPLAIN {words}",
            hint="EXPLAIN a view or a query; SHOW ARRANGEMENTS shows what is kept of a source",
        )
    state, times = engine.state, engine.watermarks.times
    if found is not None:
        return describe(engine.plan, found.name, state, times)
    if len(words.split()) == 1:
        engine.catalog.get(words.strip("`"))
    query = bind(words, engine.catalog)
    catalog = Catalog((*engine.catalog.relations, View("query", words, query.schema)), engine.catalog.indexes)
    return describe(plan(catalog, engine.state.statistics()), "query", state, times)


def show(engine: Engine, what: str) -> list[dict[str, Any]]:
    """The rows of SHOW ARRANGEMENTS, SINKS, VIEWS, SOURCES (or TABLES), WATERMARKS."""
    if what == "ARRANGEMENTS":
        return [_arrangement(engine, a.id) for a in engine.dataflow.arrangements]
    if what == "VIEWS":
        return [_view(engine, view) for view in engine.catalog.views]
    if what == "SINKS":
        return [_sink(engine, sink) for sink in engine.catalog.sinks]
    if what == "WATERMARKS":
        return watermark_rows(engine)
    read = set(engine.dataflow.scans)
    return [
        {
            "source": s.name,
            "kind": s.kind,
            "format": s.format,
            "columns": _columns(s),
            "read": s.name in read,
            "retain": _retained(s),
        }
        for s in engine.catalog.sources
    ]


def _retained(source: Source) -> str | None:
    """What a source says about how long its rows are kept, as in SQL."""
    if source.retained is None:
        return "ALL" if source.retains_all else None
    is_counted = all(pa.types.is_integer(source.schema.field(name).type) for name in source.watermarks)
    return str(source.retained) if is_counted else f"INTERVAL {length_text(source.retained).upper()}"


def _view(engine: Engine, view: View) -> dict[str, Any]:
    """A view, the watermark that holds it back, and how many rows came too late for it, by whose they are."""
    holder = holder_of(engine, view.name)
    held = None if holder is None else f"{holder[0]}.{holder[2]}"
    several = holder is not None and len(engine.watermarks.sources.get(holder[0], {}).get("inputs", ())) > 1
    partition = f", partition {holder[1]}" if holder is not None and several else ""
    return {
        "view": view.name,
        "columns": _columns(view),
        "query": view.query,
        "watermarks": output_watermarks(engine, view.name),
        "held_by": None if held is None else held + partition,
        "late": dict(engine.watermarks.late.get(view.name, {})),
        "starts_at": starts_of(engine.catalog, view),
    }


def output_watermarks(engine: Engine, view: str) -> dict[str, Any]:
    """The watermarks of a view's columns, as values of their types; a window's is that of its start."""
    schema = engine.dataflow.views[view]
    result = {}
    for name, formula in engine.plan.outputs[view].items():
        kind, value = schema.field(name).type, value_of(formula, engine.watermarks.times, LEAST)
        if value == LEAST:
            continue
        time = kind.field("start").type if pa.types.is_struct(kind) else kind
        result[name] = plain(as_column(np.array([value]), time)[0].as_py())
    return result


def _sink(engine: Engine, sink: Sink) -> dict[str, Any]:
    """A sink, its options without secrets, and the last epoch that it is known to have; None before the first."""
    identity, _ = engine.sinks[sink.name]
    options = redacted(sink.options)
    if options.get("value_format") == "avro":
        options["avro_schema"] = Values(sink).schema(written_columns(sink, engine.catalog.get(sink.view).schema))
    delivered = engine.delivered.get(identity)
    return {
        "sink": sink.name,
        "view": sink.view,
        "format": sink.format,
        "options": ", ".join(f"{name} '{value}'" for name, value in options.items()),
        "delivered": None if delivered is None else delivered.epoch,
    }


def _arrangement(engine: Engine, name: str) -> dict[str, Any]:
    arrangement = next(a for a in engine.dataflow.arrangements if a.id == name)
    parts = engine.state.arrangements.get(name, ())
    made = engine.plan.program.derived.get(arrangement.relation.partition("/")[0])
    own = () if made is None else made.operation.state(made, engine.plan.program)
    content = next((state.content for state in own if state.arrangement.id == name), "rows")
    return {
        "name": name,
        "relation": arrangement.relation,
        "key": arrangement.key.text,
        "holds": content,
        "rows": sum(part.rows for part in parts),
        "bytes": sum(part.bytes for part in parts),
        "runs": max((part.runs for part in parts), default=0),
        "used_by": engine.plan.program.named(engine.dataflow.users[name]),
    }


def _columns(relation: Source | View) -> str:
    return ", ".join(f"{field.name} {spark_name(field.type)}" for field in relation.schema)

"""What stands beside the graph when a node is chosen: definition, plan, bound certificate, stored rows."""

from __future__ import annotations

from rejoinder.engine.engine import Engine
from rejoinder.engine.status.explain_statements import explain, show
from rejoinder.errors import UnknownName
from rejoinder.explain.bound_certificate import Certificate
from rejoinder.formats.text.byte_size import size
from rejoinder.ir.catalog import View
from rejoinder.kernels.arrow.columns import DIFF, HASH, contiguous, diffs, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.plan.rounds.labels import Labels
from rejoinder.secret_options import redacted, redacted_text
from rejoinder.state.flow_state import State
from rejoinder.store.runs.run import read_run
from rejoinder.web.flow_status import FlowStatus
from rejoinder.web.panels.figures import count
from rejoinder.web.panels.markup import Content, Markup, facts, join, name_of, tag
from rejoinder.web.panels.row_panels import rows_panel, text_panel
from rejoinder.web.view_history import ROWS_READ, ROWS_SHOWN, plain_values


def node_panel(engine: Engine, status: FlowStatus, key: str) -> Markup:
    """Return the details of a node. Raises `UnknownName`."""
    node = status.graph.nodes.get(key)
    if node is None:
        raise UnknownName(
            "this part of the flow is not there", detail=f"it has no `{key[:200]}`", hint="it was dropped meanwhile"
        )
    heading = tag("h2", tag("small", node.kind), " ", name_of(node.label))
    if node.kind == "source":
        return join([heading, _source(engine, node.name)])
    if node.kind == "arrangement":
        return join([heading, _arrangement(engine, status, node.name, node.users)])
    if node.kind == "sink":
        return join([heading, _sink(engine, node.name)])
    return join([heading, _view(engine, node.name)])


def _source(engine: Engine, name: str) -> Markup:
    source = next(each for each in engine.version.catalog.sources if each.name == name)
    row = next(each for each in show(engine, "SOURCES") if each["source"] == name)
    last = engine.version.deliveries.last.get(name)
    entries: dict[str, Content] = {
        "kind": f"{row['kind']}, {row['format']}",
        "columns": str(row["columns"]),
        "options": ", ".join(f"{key} '{value}'" for key, value in redacted(source.options).items()) or None,
        "last rows": "none yet" if last is None else f"in epoch {last}",
        "read": None if row["read"] else "no view reads it",
    }
    return join(
        [facts(entries), tag("p", "The highlighted part of the graph is what its changes can reach.", class_="note")]
    )


def _view(engine: Engine, name: str) -> Markup:
    view = engine.version.catalog.get(name)
    assert isinstance(view, View), "nodes of kind view are views"
    opener = tag("button", "Show rows and changes", type="button", data_view=name, class_="primary")
    return join(
        [
            opener,
            tag("h3", "Query"),
            text_panel(redacted_text(view.query)),
            tag("h3", "Plan"),
            text_panel(redacted_text(explain(engine, name))),
        ]
    )


def _arrangement(engine: Engine, status: FlowStatus, name: str, users: tuple[str, ...]) -> Markup:
    version = engine.version
    arrangement = next(each for each in version.dataflow.arrangements if each.id == name)
    row = next(each for each in show(engine, "ARRANGEMENTS") if each["name"] == name)
    stored = status.stored[name]
    growth = (
        None
        if stored.growth is None
        else f"{'+' if stored.growth >= 0 else '−'}{size(abs(stored.growth))} over the retained commits"
    )
    entries: dict[str, Content] = {
        "content": str(row["kind"]),
        "stored": f"{count(stored.rows)} rows, {size(stored.bytes)}, {row['runs']} runs",
        "growth": growth,
        "used by": [[name_of(user), " "] for user in users] or ", ".join(row["used_by"]) or "nothing",
    }
    labels = Labels(version.plan.program.derived)
    certificates = [Certificate(version.plan, version.state, version.times, user, labels) for user in users[:1]]
    lines = [line for certificate in certificates for line in certificate.lines(arrangement)]
    bound = tag("p", [[line, tag("br")] for line in lines], class_="note") if lines else None
    return join(
        [
            facts(entries),
            tag("h3", "Bound") if lines else None,
            bound,
            tag("h3", "Rows"),
            _stored_rows(engine, version.state, name, stored.rows),
        ]
    )


def _stored_rows(engine: Engine, state: State, name: str, stored: int) -> Markup:
    if stored > ROWS_READ:
        return tag("p", "Too many to read for the page. Ask with SQL.", class_="empty")
    refs = [ref for part in state.arrangements[name] for ref in part.refs]
    if not refs:
        return tag("p", "There are no rows.", class_="empty")
    rows = consolidate(contiguous([without(read_run(engine.store, ref), [HASH]) for ref in refs]))
    rows = rows.filter(diffs(rows) > 0)
    shown = without(rows.slice(0, ROWS_SHOWN), [DIFF])
    columns = [column for column in shown.column_names if not column.startswith("__")]
    labels, relation = (
        Labels(engine.version.plan.program.derived),
        next(a for a in engine.dataflow.arrangements if a.id == name).relation,
    )
    return rows_panel(
        [labels.column(relation, column) for column in columns], plain_values(shown, columns), rows.num_rows, None
    )


def _sink(engine: Engine, name: str) -> Markup:
    row = next(each for each in show(engine, "SINKS") if each["sink"] == name)
    delivered = row["delivered"]
    return facts(
        {
            "view": name_of(row["view"]),
            "format": str(row["format"]),
            "options": redacted_text(str(row["options"])) or None,
            "delivered": "nothing yet" if delivered is None else f"up to epoch {delivered} of {engine.epoch}",
        }
    )

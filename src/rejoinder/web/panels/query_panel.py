"""The answer to a statement of the page's query box. Only statements that read are accepted."""

from __future__ import annotations

from rejoinder.engine.engine import Engine
from rejoinder.engine.statements import Explained, Followed, Queried, Reasoned, Shown, Streamed, Varied, execute
from rejoinder.engine.status.explain_statements import planned_for
from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.formats.text.row_text import text
from rejoinder.secret_options import redacted_text
from rejoinder.sql.parse.text_caps import with_stack
from rejoinder.sql.statements.statement_parser import Explain, Question, parse_statements
from rejoinder.web.graph import graph_of
from rejoinder.web.panels.markup import Markup, join
from rejoinder.web.panels.picture import picture
from rejoinder.web.panels.row_panels import rows_panel, text_panel
from rejoinder.web.view_history import ROWS_SHOWN, plain_values

LONGEST = 100_000
"""The longest text of an answer, in characters."""


def query_panel(engine: Engine, statement: str) -> Markup:
    """Answer one SELECT, SHOW, EXPLAIN or WHY. Raises a `RejoinderError`."""
    statements = parse_statements(statement)
    if len(statements) != 1:
        raise InvalidSql(f"there are {len(statements)} statements", hint="write one SELECT, SHOW, EXPLAIN or WHY")
    parsed = statements[0]
    if not isinstance(parsed, Question):
        raise Unsupported(
            "the page only reads",
            detail="this statement changes the flow",
            hint="use `rejoinder sql` or the file of the flow",
        )
    match execute(engine, parsed):
        case Queried(table=table, note=note):
            return rows_panel(
                table.column_names, plain_values(table.slice(0, ROWS_SHOWN), table.column_names), table.num_rows, note
            )
        case Streamed() as streamed:
            changes = streamed.table()
            return rows_panel(
                changes.column_names,
                plain_values(changes.slice(0, ROWS_SHOWN), changes.column_names),
                changes.num_rows,
                streamed.note,
            )
        case Varied(snapshots=snapshots):
            return text_panel(str(type(snapshots)(snapshots[-20:], snapshots.columns))[:LONGEST])
        case Explained(text=plan):
            drawn = _drawn(engine, parsed.target) if isinstance(parsed, Explain) else None
            return join([drawn, text_panel(redacted_text(plan))])
        case Reasoned(causes=causes):
            return text_panel(str(causes)[:LONGEST])
        case Followed():
            raise Unsupported(
                "a query box answers once", detail=statement, hint="choose a view and `Live` to follow its changes"
            )
        case Shown(rows=rows):
            columns = list(rows[0]) if rows else []
            listed = [[redacted_text(text(row[name])) for name in columns] for row in rows[:ROWS_SHOWN]]
            return rows_panel(columns, listed, len(rows), None)


def _drawn(engine: Engine, target: str) -> Markup:
    """Draw the part of the plan that feeds a view or query."""
    version = engine.version
    planned, name = with_stack([target, *(view.query for view in version.catalog.views)], planned_for, version, target)
    graph = graph_of(version.catalog, planned).before([f"view:{name}"])
    exists = set(version.state.arrangements)
    details = {
        key: ("exists" if node.name in exists else "new") if node.kind == "arrangement" else node.kind
        for key, node in graph.nodes.items()
    }
    return picture(graph, details)

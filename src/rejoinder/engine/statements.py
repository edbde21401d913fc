"""Run statements: definitions change the flow, all others are answered from the last committed epoch.

`Flow`, the test driver and the command line all use `execute`. They differ in how they present an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from rejoinder.engine.causes.why import Causes, why
from rejoinder.engine.causes.why_not import Reasons, why_not
from rejoinder.engine.definitions.change_plan import change_plan
from rejoinder.engine.definitions.definition_batch import grouped, planned
from rejoinder.engine.engine import Engine
from rejoinder.engine.maintenance.state_deletion import deletion_named
from rejoinder.engine.notices import warn
from rejoinder.engine.queries.adhoc_query import Ordered, run_query, split_order
from rejoinder.engine.queries.change_replay import as_sources, replay
from rejoinder.engine.queries.past_query import run_past_query
from rejoinder.engine.queries.subscription import Subscription
from rejoinder.engine.status.explain_statements import explain, show
from rejoinder.errors import NotCommitted, UnknownName, Unsupported, near_misses
from rejoinder.formats.text.plain_rows import Rows, plain_rows
from rejoinder.ir.catalog import View
from rejoinder.ir.identities import SideOutput, side_output
from rejoinder.kernels.zones.zone_labels import table_in_zone
from rejoinder.kernels.zones.zone_offsets import arrow_zone
from rejoinder.plan.operations.side_outputs import find_side_output, takes_every_row
from rejoinder.sql.bind.emit_clause import defers_emission
from rejoinder.sql.statements.query_text import named_relations, whole_relation
from rejoinder.sql.statements.result_order import Ordering, split_ordering
from rejoinder.sql.statements.row_questions import Subscribe, Why, WhyNot
from rejoinder.sql.statements.statement_parser import Explain, Question, Select, Show, parse_statements
from rejoinder.sql.statements.stream_columns import System, refuse_system_items, split_system_items
from rejoinder.state.reading.changelog_reader import history_note, history_start
from rejoinder.state.reading.renderings import (
    CHANGE_COLUMNS,
    Changes,
    Snapshot,
    Snapshots,
    changes_of,
    described,
    filled,
    settled,
    snapshots_of,
    stream_rows,
)


@dataclass(frozen=True)
class Queried:
    """The rows of a query. `is_ordered`: it has an ORDER BY, and the rows are in that order."""

    table: pa.Table
    is_ordered: bool
    note: str | None = None
    """Which rows are missing; None if the answer is complete."""


@dataclass(frozen=True)
class Streamed:
    """The changes of a query, read on demand. `view` is the name of the view if the query selects all of it.

    `system`: the system columns that the query selects itself. `note`: which part of the history is missing.
    """

    read: Callable[[], Changes]
    view: str | None = None
    system: Mapping[str, System] = field(default_factory=dict)
    note: str | None = None

    def rows(self) -> Rows:
        """Return one row per change and copy, as plain values."""
        return stream_rows(self.read(), self.system)

    def table(self) -> pa.Table:
        """Return the changes in Arrow, with `_epoch`, `_emit_time`, `_undo` and `_diff` or the query's own columns."""
        return filled(self.read(), self.system) if self.system else described(self.read())


@dataclass(frozen=True)
class Varied:
    """The snapshots of a query. `note`: which part of the history is missing."""

    snapshots: Snapshots
    note: str | None = None


@dataclass(frozen=True)
class Explained:
    """The text of EXPLAIN."""

    text: str


@dataclass(frozen=True)
class Shown:
    """The rows of SHOW."""

    what: str
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Followed:
    """The changes of a view from an epoch on, as they are committed."""

    subscription: Subscription


@dataclass(frozen=True)
class Reasoned:
    """The answer of WHY or WHY NOT."""

    causes: Causes | Reasons


Answer = Reasoned | Queried | Streamed | Varied | Explained | Shown | Followed


def run_all(
    engine: Engine,
    text: str,
    define: Callable[..., object],
    answer: Callable[[Question], Answer],
    rows: Callable[[Queried | Streamed], Any],
) -> Any:
    """Run statements and return the result of the last one; None if it is a definition.

    `define` is called with consecutive definitions, `answer` with any other statement, and `rows` with the answer to a
    query. Notes become warnings.
    """
    result: Any = None
    for statement in grouped(parse_statements(text), engine):
        if isinstance(statement, list):
            define(*statement)
            result = None
            continue
        match answer(statement):
            case Explained(text=explained):
                result = explained
            case Shown(rows=shown):
                result = shown
            case Followed(subscription=subscription):
                result = subscription
            case Reasoned(causes=causes):
                result = causes
            case Varied(snapshots=snapshots, note=note):
                warn(note)
                result = snapshots
            case answered:
                warn(answered.note)
                result = rows(answered)
    return result


def execute(engine: Engine, statement: Question) -> Answer:
    """Answer a statement at an epoch boundary. Raises a `RejoinderError`."""
    with deletion_named(engine):
        match statement:
            case Explain():
                return Explained(explained(engine, statement.target))
            case Show():
                return Shown(statement.what, show(engine, statement.what))
            case Subscribe(view=view, where=where, start=start, as_of=as_of):
                return Followed(Subscription(engine.store, view, where=where, start=start, as_of=as_of))
            case Why(view=view, where=where, as_of=as_of):
                return Reasoned(why(engine, view, where, as_of))
            case WhyNot(view=view, where=where):
                return Reasoned(why_not(engine, view, where))
            case Select():
                return _select(engine, statement)


def explained(engine: Engine, target: str) -> str:
    """Return the plan of a view or a query, or what definitions would change. Raises a `PlanningError`."""
    if not re.match(r"(CREATE|ALTER|DROP)\s", target.lstrip(), re.IGNORECASE):
        return explain(engine, target)
    definitions = [statement for statement in parse_statements(target) if not isinstance(statement, Question)]
    return "\n".join(change_plan(engine, planned(engine, definitions)).lines())


def _select(engine: Engine, statement: Select) -> Answer:
    if statement.rendering == "STREAM":
        return _stream(engine, statement)
    refuse_system_items(statement.query, statement.rendering)
    if statement.past:
        return Queried(*run_past_query(engine, statement.query, statement.past))
    if statement.rendering == "TABLE":
        return _table(engine, statement)
    return _snapshots(engine, statement)


def _table(engine: Engine, statement: Select) -> Queried:
    """Return the rows of a query.

    The rows of a view with an EMIT clause or bounded state are in its changelog only, so it cannot be computed again
    from the arrangements.
    """
    text = statement.query
    named = {name.lower() for name in named_relations(text)}
    views = [view for view in engine.version.catalog.views if view.name.lower() in named]
    needs_changelog = any(
        defers_emission(view.query) or str(SideOutput(view.name, "late")) in engine.dataflow.views for view in views
    )
    if not needs_changelog or whole_relation(text) is not None:
        table, is_ordered, note = run_query(engine, text, statement.starting)
        return Queried(_shown(engine, table), is_ordered, note)
    ordered = split_order(as_sources(engine, text), text)
    rows = settled(replay(engine, ordered.query, starting=statement.starting).changes)
    return Queried(_shown(engine, ordered.apply(rows)), bool(ordered.ordering.keys))


def _shown(engine: Engine, table: pa.Table) -> pa.Table:
    """Return a table whose timestamps say that they are shown in the zone of the flow."""
    return table_in_zone(table, arrow_zone(engine.version.catalog.time_zone))


def _stream(engine: Engine, statement: Select) -> Streamed:
    text = statement.query
    query, ordering = split_ordering(text)
    if ordering != Ordering():
        raise Unsupported(
            "ORDER BY and LIMIT are not supported on a STREAM",
            detail=text,
            hint="its rows are in the order of their epochs; SELECT TVR … ORDER BY orders each snapshot",
        )
    planned, system = split_system_items(query)
    view = _whole_view(engine, planned)
    if view is not None:
        return Streamed(lambda: _changes(engine, *view), view[0], note=view_note(engine, view[0]))
    replayed = replay(engine, planned, () if system else CHANGE_COLUMNS.names, statement.starting)
    return Streamed(lambda: replayed.changes, system=system, note=replayed.note)


def _snapshots(engine: Engine, statement: Select) -> Varied:
    text = statement.query
    ordered = split_order(as_sources(engine, text), text)
    view = _whole_view(engine, ordered.query)
    if view is not None:
        changes, note = _changes(engine, *view), view_note(engine, view[0])
    else:
        replayed = replay(engine, ordered.query, starting=statement.starting)
        changes, note = replayed.changes, replayed.note
    snapshots = snapshots_of(changes)
    if ordered.ordering != Ordering():
        snapshots = _in_order(snapshots, changes.schema, ordered)
    return Varied(snapshots, note)


def _in_order(snapshots: Snapshots, schema: pa.Schema, ordered: Ordered) -> Snapshots:
    """Order each snapshot, and combine consecutive snapshots that no longer differ."""
    result: list[Snapshot] = []
    columns: list[str] = []
    for snapshot in snapshots:
        table = ordered.apply(pa.Table.from_pylist(snapshot.rows, schema=schema))
        columns, rows = table.column_names, plain_rows(table, is_ordered=True)
        if result and result[-1].rows == rows:
            result[-1] = replace(result[-1], until=snapshot.until)
        else:
            result.append(replace(snapshot, rows=rows))
    return Snapshots(result, columns)


def _whole_view(engine: Engine, query: str) -> tuple[str, pa.Schema] | None:
    name = whole_relation(query)
    relation = None if name is None else engine.version.catalog.find(name)
    return (relation.name, relation.schema) if isinstance(relation, View) else None


def _changes(engine: Engine, view: str, schema: pa.Schema) -> Changes:
    with engine.lock:
        if engine.version.manifest is None:
            raise NotCommitted("nothing is committed yet", hint="run the flow first")
        return changes_of(engine.store, engine.version.manifest, view, schema)


def view_note(engine: Engine, view: str) -> str | None:
    """Return which changes of a view are missing; None if the history is complete."""
    start = None if engine.version.manifest is None else history_start(engine.version.manifest, view)
    return None if start is None else history_note([view], start)


def find_view(engine: Engine, name: str) -> tuple[str, pa.Schema]:
    """Return the name of a view as it was defined, and its columns. The case of names is ignored.

    Raises `UnknownName`, or `Unsupported` for the late rows of a view that has none.
    """
    dataflow, side = engine.dataflow, side_output(name)
    views = {view: schema for view, schema in dataflow.views.items() if view not in dataflow.source_changes}
    stored = next((view for view in views if view.lower() == name.lower()), None)
    if stored is None:
        catalog = engine.version.catalog
        if side is not None and side.output == "late" and find_side_output(catalog, name) is not None:
            raise takes_every_row(side.owner)
        is_source = catalog.find(name) is not None
        raise UnknownName(
            f"`{name}` is a source" if is_source else f"there is no view `{name}` to read",
            detail=f"views: {', '.join(views) or 'none'}",
            hint="read it with SELECT" if is_source else near_misses(name, views) or "CREATE VIEW it first",
        )
    return stored, views[stored]

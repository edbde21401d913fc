"""Carry a statement out: definitions change the flow, everything else is answered from the last committed epoch.

Flow, the test driver and the command line all come through here; they differ in how they hand an answer over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from rejoinder.engine.definitions import execute_definition
from rejoinder.engine.engine import Engine
from rejoinder.engine.explain import explain, show
from rejoinder.engine.query import run_query
from rejoinder.errors import UnknownName, Unsupported, near_misses
from rejoinder.sql.statements import Explain, Select, Show, Statement
from rejoinder.sql.texts import whole_relation


@dataclass(frozen=True)
class Queried:
    """The rows of a query; in the order it asked for, if it did."""

    table: pa.Table
    is_ordered: bool


@dataclass(frozen=True)
class Rendered:
    """A view to be read as STREAM or TVR."""

    view: str
    schema: pa.Schema
    rendering: Literal["STREAM", "TVR"]


@dataclass(frozen=True)
class Explained:
    """The text of EXPLAIN."""

    text: str


@dataclass(frozen=True)
class Shown:
    """The rows of SHOW."""

    what: str
    rows: list[dict[str, Any]]


Answer = Queried | Rendered | Explained | Shown


def execute(engine: Engine, statement: Statement) -> Answer | None:
    """Carry a statement out at an epoch boundary; None for a definition. Raises a `RejoinderError`."""
    match statement:
        case Explain():
            return Explained(explain(engine, statement.target))
        case Show():
            return Shown(statement.what, show(engine, statement.what))
        case Select():
            return _select(engine, statement)
        case _:
            execute_definition(engine, statement)
            return None


def _select(engine: Engine, statement: Select) -> Answer:
    if statement.rendering == "TABLE":
        return Queried(*run_query(engine, statement.query))
    name = whole_relation(statement.query)
    if name is None:
        raise Unsupported(
            "STREAM and TVR of a query that is not a view are not offered yet",
            detail=statement.query,
            hint=f"CREATE VIEW v AS …; then SELECT {statement.rendering} * FROM v",
        )
    return Rendered(*find_view(engine, name), statement.rendering)


def find_view(engine: Engine, name: str) -> tuple[str, pa.Schema]:
    """The name of a view as it was defined, and its columns. Names compare without case."""
    views = engine.dataflow.views
    found = next((view for view in views if view.lower() == name.lower()), None)
    if found is None:
        is_source = engine.catalog.find(name) is not None
        raise UnknownName(
            f"`{name}` is a source" if is_source else f"there is no view `{name}` to read",
            detail=f"views: {', '.join(views) or 'none'}",
            hint="read it with SELECT" if is_source else near_misses(name, views) or "CREATE VIEW it first",
        )
    return found, views[found]

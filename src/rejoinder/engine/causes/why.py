"""WHY: the input rows that make rows of a view, level by level through views, each with its time of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rejoinder.engine.causes.arrivals import UNKNOWN, arrivals, commit_times, row_key
from rejoinder.engine.causes.tree_rows import TreeRows
from rejoinder.engine.causes.witnesses import distinct_rows, result_of, witnesses
from rejoinder.engine.engine import Engine
from rejoinder.engine.queries.subscription import condition_on
from rejoinder.errors import NotCommitted, UnknownName, Unsupported
from rejoinder.formats.text.plain_rows import Row, Rows, python_rows
from rejoinder.formats.text.row_text import plain, text
from rejoinder.ir.catalog import Source, View
from rejoinder.kernels.duckdb.evaluate import select_rows
from rejoinder.runtime.row_json import as_json
from rejoinder.state.reading.changelog_reader import check_epoch
from rejoinder.state.reading.renderings import moment

LIMIT = 100
"""The largest number of causes."""
ROWS = 10
"""The largest number of rows of the view that are explained."""
COLUMNS = ("level", "relation", "row", "step", "epoch", "time", "exact", "until")


@dataclass(frozen=True)
class Cause:
    """A row of a relation that makes the row above it; at level 0, a row of the view."""

    level: int
    relation: str
    row: Row | None
    """None: no row of the relation matches."""
    json: str | None
    step: str
    """The steps of the plan that lead from the level above to the row."""
    epoch: int | None = None
    """The last epoch in which the row arrived."""
    time: Any = None
    """When this epoch was committed, in UTC."""
    exact: bool = True
    """Otherwise the row arrived in this epoch or an earlier one."""
    until: int | None = None
    """The epoch in which the row was retracted; None while it is there."""

    @property
    def arrival(self) -> str:
        """The arrival as text."""
        if self.epoch is None:
            return ""
        came = f"{'' if self.exact else 'at or before '}epoch {self.epoch}"
        when = f" ({text(self.time)})" if self.time is not None else ""
        return f"{came}{when}" + (f", retracted in epoch {self.until}" if self.until is not None else "")


class Causes(Rows):
    """The answer of WHY: one row per cause, with `note` if it is incomplete; as text, a tree."""

    def __init__(self, causes: Iterable[Cause], note: str | None = None) -> None:
        self.causes = list(causes)
        self.note = note
        super().__init__(
            [{**{name: getattr(cause, name) for name in COLUMNS}, "row": cause.json} for cause in self.causes],
            COLUMNS,
        )

    def __str__(self) -> str:
        lines = [_line(cause) for cause in self.causes]
        return "\n".join([*lines, *([f"({self.note})"] if self.note else [])])


def _line(cause: Cause) -> str:
    row = "no row" if cause.row is None else ", ".join(f"{name}={text(value)}" for name, value in cause.row.items())
    step = f"  ← {cause.step}" if cause.step else ""
    arrival = f"  · {cause.arrival}" if cause.arrival else ""
    return f"{'    ' * cause.level}{cause.relation}: {row}{step}{arrival}"


def why(engine: Engine, view: str, where: str | None = None, as_of: int | None = None) -> Causes:
    """Return the causes of the rows of a view that fulfil a condition, now or as of an epoch.

    Raises `UnknownName`, `NotCommitted` for an epoch outside the history, and `Unsupported` if a row of the past needs
    a source whose past rows are not kept.
    """
    with engine.lock:  # a commit may collect the files of the version before it
        manifest = engine.version.manifest
        if manifest is None:
            raise NotCommitted("nothing is committed yet", hint="run the flow first")
        inputs = TreeRows(engine, manifest.epoch if as_of is None else as_of)
        relation = asked_view(inputs, view)
        if as_of is not None:
            check_epoch(manifest, relation.name, as_of)
        rows, zone = inputs.table(relation.name), engine.version.catalog.time_zone
        rows = distinct_rows(rows if where is None else select_rows(rows, condition_on(relation, where, zone)))
        if rows.num_rows == 0:
            at = "" if as_of is None else f" as of epoch {as_of}"
            return Causes([], f"no row of `{relation.name}` fulfils the condition{at}; WHY NOT says why")
        found, unknown = _Search(inputs), []
        for number in range(min(rows.num_rows, ROWS)):
            row = rows.slice(number, 1)
            found.add(relation, row, 0, "")
            try:
                found.descend(relation, row, 1)
            except Unsupported as refused:
                if as_of is None or as_of == manifest.epoch:
                    raise
                unknown = [f"its causes are not kept: {refused.fact}"]
        notes = [*unknown, *([f"the first {ROWS} of {rows.num_rows:,} rows"] if rows.num_rows > ROWS else [])]
        notes += [f"the first {LIMIT} causes"] if found.is_full else []
        return Causes(found.causes, "; ".join(notes) or None)


def condition_text(where: str | Mapping[str, Any] | None) -> str | None:
    """Return a condition as SQL: text as it is, a row as the equality of each of its columns.

    >>> condition_text({"id": 1, "name": "Ada", "at": None})
    "`id` <=> 1 AND `name` <=> 'Ada' AND `at` <=> NULL"
    """
    if where is None or isinstance(where, str):
        return where
    return " AND ".join(f"`{name}` <=> {_literal(value)}" for name, value in where.items()) or None


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool() | int() | float() | Decimal():
            return str(value)
        case datetime():
            return f"TIMESTAMP '{plain(value)}'"
        case date():
            return f"DATE '{value}'"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    raise Unsupported(
        f"a condition on a {type(value).__name__} is not supported here",
        hint="give the other columns of the row, or a condition in SQL",
    )


def asked_view(inputs: TreeRows, name: str) -> View:
    """Return a view. Raises `UnknownName` for a source."""
    relation = inputs.relation(name)
    if isinstance(relation, View):
        return relation
    views = [view.name for view in inputs.engine.version.catalog.views]
    raise UnknownName(
        f"`{relation.name}` is not a view",
        detail=f"views: {', '.join(views) or 'none'}",
        hint="its rows come from outside; SELECT reads them",
    )


class _Search:
    """Collects causes up to the limit."""

    def __init__(self, inputs: TreeRows) -> None:
        self.causes: list[Cause] = []
        self.is_full = False
        self._inputs = inputs
        self._times = commit_times(inputs.engine)

    def add(self, relation: Source | View, rows: pa.Table, level: int, step: str) -> None:
        """Add rows of a relation."""
        if rows.num_rows == 0:
            self._append(Cause(level, relation.name, None, None, step))
            return
        shown = rows.slice(0, LIMIT)
        arrived = arrivals(self._inputs.engine, relation, shown, self._inputs.epoch)
        for row, json in zip(python_rows(shown), as_json(shown).to_pylist(), strict=True):
            arrival = arrived.get(row_key(row), UNKNOWN)
            time = None if arrival.epoch is None else moment(self._times.get(arrival.epoch))
            values = {name: plain(value) for name, value in row.items()}
            self._append(
                Cause(level, relation.name, values, json, step, arrival.epoch, time, arrival.is_exact, arrival.until)
            )
        self.is_full |= rows.num_rows > LIMIT

    def descend(self, view: View, rows: pa.Table, level: int) -> None:
        """Add what makes rows of a view."""
        query = self._inputs.bound(view)
        for found in witnesses(self._inputs, result_of(query), rows):
            relation = self._inputs.relation(str(found.scan.relation))
            self.add(relation, found.rows, level, "; ".join(found.steps))
            if isinstance(relation, View) and found.rows.num_rows and not self.is_full:
                self.descend(relation, found.rows.slice(0, LIMIT), level + 1)

    def _append(self, cause: Cause) -> None:
        if len(self.causes) < LIMIT:
            self.causes.append(cause)
        else:
            self.is_full = True

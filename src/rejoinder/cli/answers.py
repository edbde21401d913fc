"""Show what a statement answered: as tables, or as CSV or JSON lines for the next program."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rich.text import Text

from rejoinder.cli.screen import count, note, out
from rejoinder.cli.tables import Row, show_rows, text
from rejoinder.engine.engine import Engine
from rejoinder.engine.rendering import Snapshot, plain_rows, stream_rows, tvr_snapshots
from rejoinder.engine.serving import CHANGE_COLUMNS
from rejoinder.engine.statements import Answer, Explained, Queried, Rendered, Shown
from rejoinder.errors import NotCommitted

LIMIT = 100
SNAPSHOTS = 10


class Format(str, Enum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True)
class Showing:
    """How much is shown, and how. `limit` 0 is no limit; None is `LIMIT` for tables and no limit for the others."""

    format: Format = Format.TABLE
    limit: int | None = None

    def cut(self, rows: Sequence[Any]) -> int:
        """How many of the rows are shown."""
        limit = (LIMIT if self.format is Format.TABLE else 0) if self.limit is None else self.limit
        return min(limit or len(rows), len(rows))


def show_answer(engine: Engine, answer: Answer, showing: Showing) -> None:
    """Print an answer to standard output."""
    match answer:
        case Explained():
            out.print(Text(answer.text))
        case Shown():
            rows = [{name: _listed(value) for name, value in row.items()} for row in answer.rows]
            _show(rows, list(rows[0]) if rows else [], showing)
        case Queried():
            columns = answer.table.column_names
            _show(plain_rows(answer.table, is_ordered=answer.is_ordered), columns, showing)
        case Rendered(rendering="STREAM"):
            _show_stream(engine, answer, showing)
        case Rendered():
            _show_snapshots(engine, answer, showing)


def _listed(value: Any) -> Any:
    """Lists as words, and the text of a query on one line."""
    if isinstance(value, str):
        return " ".join(value.split())
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _show(rows: Sequence[Row], columns: Sequence[str], showing: Showing) -> None:
    shown = rows[: showing.cut(rows)]
    if showing.format is Format.TABLE:
        if columns:
            show_rows(shown, columns)
        _tell_count(len(shown), len(rows), "row")
    else:
        _write(shown, columns, showing.format)
        if len(shown) < len(rows):
            note(f"the first {len(shown):,} of {count(len(rows), 'row')}")


def _tell_count(shown: int, total: int, noun: str, which: str = "first") -> None:
    if shown == total:
        out.print(Text(f"({count(total, noun)})", style="dim"))
    else:
        out.print(Text(f"(the {which} {shown:,} of {count(total, noun)}; --limit 0 shows all)", style="dim"))


def _show_stream(engine: Engine, answer: Rendered, showing: Showing) -> None:
    if engine.manifest is None:
        raise NotCommitted("nothing is committed yet", hint="run the flow first")
    rows = stream_rows(engine.store, engine.manifest, answer.view, answer.schema)
    columns = [*answer.schema.names, *(name for name in CHANGE_COLUMNS.names if name != "_diff")]
    shown = rows[len(rows) - showing.cut(rows) :]
    if showing.format is not Format.TABLE:
        _write(shown, columns, showing.format)
        return
    show_rows(shown, columns, styles=["red" if row["_undo"] else "green" for row in shown])
    _tell_count(len(shown), len(rows), "change", "last")


def _show_snapshots(engine: Engine, answer: Rendered, showing: Showing) -> None:
    if engine.manifest is None:
        raise NotCommitted("nothing is committed yet", hint="run the flow first")
    snapshots = tvr_snapshots(engine.store, engine.manifest, answer.view, answer.schema)
    if showing.format is not Format.TABLE:
        rows = [{"_since": s.since, "_until": s.until, **row} for s in snapshots for row in s.rows]
        _write(rows, ["_since", "_until", *answer.schema.names], showing.format)
        return
    shown = snapshots if showing.limit == 0 else snapshots[-SNAPSHOTS:]
    for snapshot in shown:
        out.print(Text(_validity(snapshot), style="bold"))
        if snapshot.rows:
            show_rows(snapshot.rows[: showing.cut(snapshot.rows)], answer.schema.names)
        _tell_count(showing.cut(snapshot.rows), len(snapshot.rows), "row")
        out.print()
    _tell_count(len(shown), len(snapshots), "snapshot", "last")


def _validity(snapshot: Snapshot) -> str:
    since = "the beginning" if snapshot.since is None else text(snapshot.since)
    until = "now" if snapshot.until is None else text(snapshot.until)
    epoch = "" if snapshot.epoch < 0 else f" (epoch {snapshot.epoch})"
    return f"from {since}{epoch} to {until}"


def _write(rows: Sequence[Row], columns: Sequence[str], format_: Format) -> None:
    if format_ is Format.JSON:
        for row in rows:
            out.file.write(json.dumps({name: row[name] for name in columns}, default=_plain, ensure_ascii=False) + "\n")
        return
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if row[name] is None else _field(row[name]) for name in columns] for row in rows])
    out.file.write(buffer.getvalue())


def _field(value: Any) -> str:
    return value if isinstance(value, str) else text(value)


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else text(value)

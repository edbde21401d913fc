"""Print the answer of a statement as tables, CSV, or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rich.text import Text

from rejoinder.cli.terminal.change_lines import show_epoch
from rejoinder.cli.terminal.result_tables import Row, show_rows
from rejoinder.cli.terminal.screen import count, note, out
from rejoinder.engine.causes.why import Causes
from rejoinder.engine.causes.why_not import Reasons
from rejoinder.engine.queries.subscription import Subscription
from rejoinder.engine.statements import Answer, Explained, Followed, Queried, Reasoned, Shown, Streamed, Varied
from rejoinder.formats.text.neutral_text import escaped_json, guarded
from rejoinder.formats.text.plain_rows import plain_rows
from rejoinder.formats.text.row_text import text

LIMIT = 100
SNAPSHOTS = 10


class Format(str, Enum):
    """The output format of rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True)
class Showing:
    """Options of the output. `limit` 0 is no limit; None is `LIMIT` for tables and no limit for other formats.

    `guard`: CSV fields are written so that no spreadsheet reads them as formulas. `expanded`: rows of a table are
    printed as records; None means only if they are too wide for the terminal.
    """

    format: Format = Format.TABLE
    limit: int | None = None
    guard: bool = True
    expanded: bool | None = None

    def cut(self, rows: Sequence[Any]) -> int:
        """Return the number of rows to show."""
        limit = (LIMIT if self.format is Format.TABLE else 0) if self.limit is None else self.limit
        return min(limit or len(rows), len(rows))


def show_answer(answer: Answer, showing: Showing) -> None:
    """Print an answer to standard output."""
    match answer:
        case Explained():
            out.print(Text(answer.text))
        case Shown():
            rows = [{name: _listed(value) for name, value in row.items()} for row in answer.rows]
            _show(rows, list(rows[0]) if rows else [], showing)
        case Queried():
            _say(answer.note)
            columns = answer.table.column_names
            _show(plain_rows(answer.table, is_ordered=answer.is_ordered), columns, showing)
        case Streamed():
            _show_stream(answer, showing)
        case Varied():
            _show_snapshots(answer, showing)
        case Reasoned():
            _show_causes(answer.causes, showing)
        case Followed():
            follow(answer.subscription, showing)


def _show_causes(causes: Causes | Reasons, showing: Showing) -> None:
    """Print causes as a tree, or as rows in other formats than tables."""
    if showing.format is Format.TABLE:
        out.print(Text(str(causes)))
        return
    _say(causes.note)
    _write(causes, causes.columns, showing)


def follow(subscription: Subscription, showing: Showing) -> None:
    """Print the changes of a view as they are committed, until Ctrl-C."""
    note(f"following `{subscription.view}` after epoch {subscription.epoch}; Ctrl-C ends")
    is_first = True
    for changes in subscription:
        if showing.format is Format.TABLE:
            show_epoch(subscription.view, changes.epoch, changes.rows, showing.limit)
        else:
            system = {"_epoch": changes.epoch, "_emit_time": changes.time}
            rows = [{**row, **system, "_undo": diff < 0} for row, diff in changes.rows for _ in range(abs(diff))]
            shown = rows[: showing.cut(rows)]
            _write(shown, [*subscription.columns, *system, "_undo"], showing, header=is_first)
            if len(shown) < len(rows):
                note(f"epoch {changes.epoch}: the first {len(shown):,} of {count(len(rows), 'change')}")
        out.file.flush()
        is_first = False


def _listed(value: Any) -> Any:
    """Format lists and counts as text, and put the text of a query on one line."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return ", ".join(f"{name}: {number}" for name, number in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _show(rows: Sequence[Row], columns: Sequence[str], showing: Showing) -> None:
    shown = rows[: showing.cut(rows)]
    if showing.format is Format.TABLE:
        if columns:
            show_rows(shown, columns, expanded=showing.expanded)
        _print_count(len(shown), len(rows), "row")
    else:
        _write(shown, columns, showing)
        if len(shown) < len(rows):
            note(f"the first {len(shown):,} of {count(len(rows), 'row')}")


def _print_count(shown: int, total: int, noun: str, which: str = "first") -> None:
    if shown == total:
        out.print(Text(f"({count(total, noun)})", style="dim"))
    else:
        out.print(Text(f"(the {which} {shown:,} of {count(total, noun)}; --limit 0 shows all)", style="dim"))


def _show_stream(answer: Streamed, showing: Showing) -> None:
    rows = answer.rows()
    _say(answer.note)
    shown = rows[len(rows) - showing.cut(rows) :]
    if showing.format is not Format.TABLE:
        _write(shown, rows.columns, showing)
        return
    undo = next((name for name, column in answer.system.items() if column == "undo"), "_undo")
    styles = ["red" if row[undo] else "green" for row in shown] if undo in rows.columns else None
    show_rows(shown, rows.columns, styles=styles, expanded=showing.expanded)
    _print_count(len(shown), len(rows), "change", "last")


def _show_snapshots(answer: Varied, showing: Showing) -> None:
    snapshots = answer.snapshots
    _say(answer.note)
    if showing.format is not Format.TABLE:
        rows = [{"_since": s.since, "_until": s.until, **row} for s in snapshots for row in s.rows]
        _write(rows, ["_since", "_until", *snapshots.columns], showing)
        return
    shown = snapshots if showing.limit == 0 else snapshots[-SNAPSHOTS:]
    for snapshot in shown:
        out.print(Text(snapshot.period, style="bold"))
        if snapshot.rows:
            shown_rows = snapshot.rows[: showing.cut(snapshot.rows)]
            show_rows(shown_rows, snapshots.columns, expanded=showing.expanded)
        _print_count(showing.cut(snapshot.rows), len(snapshot.rows), "row")
        out.print()
    _print_count(len(shown), len(snapshots), "snapshot", "last")


def _say(text_: str | None) -> None:
    if text_ is not None:
        note(text_)


def _write(rows: Sequence[Row], columns: Sequence[str], showing: Showing, *, header: bool = True) -> None:
    if showing.format is Format.JSON:
        for row in rows:
            shown = {name: _with_text_keys(row[name]) for name in columns}
            out.file.write(escaped_json(json.dumps(shown, default=_plain, ensure_ascii=False)) + "\n")
        return
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    write = guarded if showing.guard else str
    if header:
        writer.writerow([write(name) for name in columns])
    writer.writerows([["" if row[name] is None else _field(row[name], write) for name in columns] for row in rows])
    out.file.write(buffer.getvalue())


def _with_text_keys(value: Any) -> Any:
    """Convert the keys of maps in a value to text, as JSON needs."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else text(key): _with_text_keys(inner) for key, inner in value.items()}
    return [_with_text_keys(inner) for inner in value] if isinstance(value, list) else value


def _field(value: Any, write: Callable[[str], str]) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return write(value) if isinstance(value, str) else text(value)


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else text(value)

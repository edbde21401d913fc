"""Rows on the page: a view at an epoch with its changes, and the answers of queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rejoinder.formats.text.neutral_text import neutral_lines
from rejoinder.formats.text.row_text import is_number, text
from rejoinder.web.panels.figures import clock
from rejoinder.web.panels.markup import Content, Markup, cut, join, name_of, table, tag
from rejoinder.web.view_history import Change, ViewAt


def view_panel(view: ViewAt, times: Mapping[int, int]) -> Markup:
    """Return a view at an epoch: sliders over its history, its rows, and its changes. `times`: commits by epoch."""
    return join(
        [
            tag("h2", name_of(view.name), " ", tag("small", _when(view, times))),
            _sliders(view),
            tag(
                "div",
                tag("section", tag("h3", _rows_title(view)), _rows(view.columns, view.rows), class_="rows"),
                tag("section", tag("h3", _changes_title(view)), _changes(view), class_="changes"),
                class_="beside",
            ),
        ]
    )


def _when(view: ViewAt, times: Mapping[int, int]) -> str:
    if view.epoch < 0:
        return "before the first epoch"
    when = f", committed {clock(times[view.epoch])} UTC" if view.epoch in times else ""
    return f"as of epoch {view.epoch}{when}"


def _sliders(view: ViewAt) -> Markup:
    low, high = max(0, view.first), max(0, view.last)
    shown = view.epoch if view.against is None else view.against
    span = {"type": "range", "min": str(low), "max": str(high), "step": "1"}
    return tag(
        "div",
        tag(
            "label",
            "epoch ",
            tag("output", str(view.epoch)),
            tag("input", id="position", value=str(view.epoch), **span),
        ),
        tag(
            "label",
            "compared with ",
            tag("output", "nothing" if view.against is None else str(view.against)),
            tag("input", id="against", value=str(shown), **span),
        ),
        tag("button", "Live", type="button", id="live", aria_pressed="true" if view.epoch == view.last else "false"),
        tag("span", f"history: epochs {low:,} to {high:,}", class_="summary"),
        class_="sliders",
        data_view=view.name,
    )


def _rows_title(view: ViewAt) -> str:
    if view.share < 1:
        return f"Rows: a sample, about {view.share:.1%} of the view"
    return f"{view.total:,} row{'' if view.total == 1 else 's'}" + _cut_note(len(view.rows), view.total)


def _changes_title(view: ViewAt) -> str:
    what = "Changes of the last epochs" if view.against is None else f"From epoch {view.against} to {view.epoch}"
    return f"{what}: {view.changed:,}" + _cut_note(len(view.changes), view.changed)


def _cut_note(shown: int, total: int) -> str:
    return f", {shown:,} shown" if shown < total else ""


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    if not rows:
        return tag("p", "There are no rows.", class_="empty")
    numeric = frozenset(at for at in range(len(columns)) if all(is_number(row[at]) or row[at] is None for row in rows))
    return tag("div", table(columns, ([cell(value) for value in row] for row in rows), numeric), class_="wide tall")


def _changes(view: ViewAt) -> Markup:
    if not view.changes:
        return tag("p", "Nothing changed.", class_="empty")
    listed = (_change(change) for change in view.changes)
    head = tag("thead", tag("tr", (tag("th", name_of(name), scope="col") for name in ("", "epoch", *view.columns))))
    return tag("div", tag("table", head, tag("tbody", listed)), class_="wide tall")


def _change(change: Change) -> Markup:
    sign = "+" if change.diff > 0 else "−"
    copies = "" if abs(change.diff) == 1 else f" ×{abs(change.diff):,}"
    cells: Iterable[Content] = [
        f"{sign}{copies}",
        "" if change.epoch is None else str(change.epoch),
        *map(cell, change.values),
    ]
    return tag("tr", (tag("td", each) for each in cells), class_="added" if change.diff > 0 else "retracted")


def cell(value: Any) -> Content:
    """Return a value of a row, cut if it is long."""
    return tag("i", "NULL") if value is None else tag("bdi", cut(text(value)))


def rows_panel(columns: Sequence[str], rows: Sequence[Sequence[Any]], total: int, note: str | None) -> Markup:
    """Return the rows of a query."""
    title = f"{total:,} row{'' if total == 1 else 's'}" + _cut_note(len(rows), total)
    return join(
        [tag("p", title, class_="summary"), tag("p", note, class_="note") if note else None, _rows(columns, rows)]
    )


def text_panel(content: str) -> Markup:
    """Return a text of several lines, such as a plan."""
    lines = (join([line, Markup("\n")]) for line in neutral_lines(content).split("\n"))
    return tag("pre", lines, tabindex="0")

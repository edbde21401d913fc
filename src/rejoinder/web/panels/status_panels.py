"""The panels of the first screen: head, graph, epochs, views, watermarks, and rows that did not arrive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rejoinder.formats.text.byte_size import size
from rejoinder.formats.text.row_text import text
from rejoinder.secret_options import redacted_text
from rejoinder.state.epoch_log import PARTS, EpochEntry
from rejoinder.web.flow_status import FlowStatus, ViewStatus, WatermarkStatus, milliseconds_of
from rejoinder.web.graph import Node
from rejoinder.web.panels.figures import clock, count, duration
from rejoinder.web.panels.markup import Markup, cut, escaped, join, name_of, table, tag
from rejoinder.web.panels.picture import picture

MOST_VIEWS = 500
MOST_WATERMARKS = 200
STRIP, BAR = 90, 11
"""Height of the strip of epochs, and width of one epoch, in pixels."""


def panels(status: FlowStatus) -> dict[str, Markup]:
    """Return the panels by the id of their place on the page."""
    return {
        "head": head(status),
        "graph": graph(status),
        "epochs": epochs(status.entries),
        "views": views(status),
        "watermarks": watermarks(status.watermarks),
    }


def head(status: FlowStatus) -> Markup:
    """Return the place of the state, the newest epoch, and totals. The page adds how long ago the epoch was."""
    stored = sum(each.bytes for each in status.stored.values())
    facts = {
        "epoch": "none yet" if status.epoch < 0 else f"{status.epoch:,}",
        "state": size(stored),
        "views": f"{len(status.views):,}",
        "arrangements": f"{len(status.stored):,}",
    }
    when = tag("time", clock(status.time_ms) if status.time_ms else "never", data_ms=status.time_ms, class_="commit")
    return join(
        [
            tag("span", redacted_text(status.place), class_="place", title=redacted_text(status.place)),
            (tag("span", tag("b", value), " ", name, class_="fact") for name, value in facts.items()),
            tag("span", "last commit ", when, class_="fact"),
        ]
    )


def graph(status: FlowStatus) -> Markup:
    """Return the flow as a picture, with figures on its nodes."""
    if not status.graph.nodes:
        return tag("p", "Nothing is defined yet.", class_="empty")
    return picture(status.graph, {key: _figures(status, node) for key, node in status.graph.nodes.items()})


def _figures(status: FlowStatus, node: Node) -> str:
    if node.kind == "arrangement":
        stored = status.stored.get(node.name)
        if stored is None:
            return "new"
        growth = stored.growth or 0
        sign = f" {'▲' if growth > 0 else '▼'} {size(abs(growth))}" if growth else ""
        return f"{count(stored.rows)} rows · {size(stored.bytes)}{sign}"
    if node.kind == "sink":
        sink = next(each for each in status.sinks if each.name == node.name)
        return "nothing delivered yet" if sink.delivered is None else f"delivered up to epoch {sink.delivered}"
    rate = status.rate(node.name)
    last = status.entries[-1] if status.entries else None
    rows = 0 if last is None else (last.rows_in if node.kind == "source" else last.rows_out).get(node.name, 0)
    word = "rows" if node.kind == "source" else "changes"
    return f"{count(rows)} {word}" + ("" if rate is None else f" · {rate:.1f}/s")


def epochs(entries: Sequence[EpochEntry]) -> Markup:
    """Return the last epochs as a strip: wall time by part, the slow ones marked, rows in and out below."""
    if not entries:
        return tag("p", "No epoch has been logged yet.", class_="empty")
    highest = max(1, *(entry.milliseconds for entry in entries))
    usual = sorted(entry.milliseconds for entry in entries)[len(entries) // 2]
    most = max(1, *(sum(entry.rows_in.values()) for entry in entries))
    strip = tag(
        "svg",
        (_bar(number, entry, highest, usual, most) for number, entry in enumerate(entries)),
        class_="strip",
        viewBox=f"0 0 {len(entries) * BAR} {STRIP + 34}",
        preserveAspectRatio="xMinYMin meet",
        height=STRIP + 34,
        role="img",
        aria_label=f"Wall time of the last {len(entries)} epochs by part",
    )
    legend = tag("p", (tag("span", part, class_=f"key part-{part}") for part in (*PARTS, "rows in")), class_="legend")
    slow = [entry for entry in entries if _is_slow(entry, usual)][-3:]
    notes = (tag("li", _explanation(entry, usual, most)) for entry in reversed(slow))
    text_ = f"usually {duration(usual)}, at most {duration(highest)}"
    return join([tag("p", text_, class_="summary"), tag("div", strip, class_="wide"), legend, tag("ul", notes)])


def _is_slow(entry: EpochEntry, usual: int) -> bool:
    return entry.milliseconds > max(3 * usual, usual + 200)


def _explanation(entry: EpochEntry, usual: int, most: int) -> str:
    """Say why an epoch was slow: its rows, or the part that took most of the time."""
    part, value = max(entry.parts.items(), key=lambda item: item[1])
    rows = sum(entry.rows_in.values())
    why = f"{part} took {duration(value)}"
    if rows > most / 2:
        why = f"it read {count(rows)} rows; {why}"
    return f"epoch {entry.epoch} took {duration(entry.milliseconds)}: {why}"


def _bar(number: int, entry: EpochEntry, highest: int, usual: int, most: int) -> Markup:
    rows, x, bottom = sum(entry.rows_in.values()), float(number * BAR), float(STRIP)
    parts = []
    for part in PARTS:
        height = entry.parts.get(part, 0) / highest * STRIP
        bottom -= height
        parts.append(tag("rect", x=x, y=bottom, width=BAR - 2, height=height, class_=f"part-{part}"))
    parts.append(tag("rect", x=x, y=STRIP + 4.0, width=BAR - 2, height=rows / most * 26, class_="part-rows"))
    spent = ", ".join(f"{part} {duration(value)}" for part, value in entry.parts.items())
    out = sum(entry.rows_out.values())
    title = f"epoch {entry.epoch}, {clock(entry.time_ms)} UTC: {rows:,} rows in, {out:,} changes; {spent}"
    title += f"; {size(entry.bytes_written)} written" + (f"; {entry.late:,} late" if entry.late else "")
    slow = " slow" if _is_slow(entry, usual) else ""
    hit = tag("rect", x=x, y=0.0, width=BAR, height=STRIP + 34, class_="hit")
    return tag("g", tag("title", title), hit, parts, class_=f"epoch{slow}")


def views(status: FlowStatus) -> Markup:
    """Return the views, those that wait or are far behind first."""
    if not status.views:
        return tag("p", "There is no view yet.", class_="empty")
    ordered = sorted(status.views, key=lambda view: (-(view.behind_ms or 0), -view.pending, view.name))
    rows = [_view_row(view, status) for view in ordered[:MOST_VIEWS]]
    rest = len(ordered) - len(rows)
    note = tag("p", f"and {rest:,} more", class_="summary") if rest > 0 else None
    rejected = [
        tag("li", _opener(f"{name}.rejected", f"{rows:,} rejected"), " records of ", name_of(name))
        for name, rows in status.rejected.items()
    ]
    columns = ("view", "changes by epoch", "last change", "event time behind", "late", "pending")
    return join([tag("div", table(columns, rows, frozenset({4, 5})), class_="wide"), note, tag("ul", rejected)])


def _view_row(view: ViewStatus, status: FlowStatus) -> Iterator[Markup | str | None]:
    yield _opener(view.name, view.name)
    yield _sparkline([value or 0 for value in view.changes])
    yield "none yet" if view.last_change is None else f"epoch {view.last_change}"
    behind = "—" if view.behind_ms is None else duration(max(0, view.behind_ms))
    waits = None if view.blocked_by is None else tag("small", " waits for ", name_of(view.blocked_by))
    yield join([behind, waits])
    yield _opener(f"{view.name}.late", f"{view.late:,}") if view.late else "0"
    pending = next((n.key for n in status.graph.nodes.values() if n.name.startswith(f"{view.name}/pending")), None)
    shown = tag("button", f"{view.pending:,}", type="button", class_="link", data_node=pending, title=view.waits)
    yield shown if view.pending else "0"


def _opener(view: str, label: str) -> Markup:
    return tag("button", name_of(label), type="button", class_="link", data_view=view)


def _sparkline(values: Sequence[int]) -> Markup:
    most = max(1, *values) if values else 1
    bars: Iterable[Markup] = (
        tag("rect", x=float(at * 3), y=20 - (value / most * 18 + 1), width=2, height=value / most * 18 + 1)
        for at, value in enumerate(values)
        if value
    )
    width = max(1, len(values) * 3)
    label = f"{sum(values):,} changes in {len(values)} epochs"
    return tag("svg", tag("title", label), bars, class_="spark", viewBox=f"0 0 {width} 20", width=width, height=20)


def watermarks(rows: Sequence[WatermarkStatus]) -> Markup:
    """Return the watermarks as bars on one time axis. The one that views wait for is marked."""
    if not rows:
        return tag("p", "No source has a WATERMARK.", class_="empty")
    times = [time for row in rows if (time := milliseconds_of(row.value)) is not None]
    low, high = min(times, default=0), max(times, default=1)
    start = low - max(1000, (high - low) // 10)
    listed = (_watermark(row, start, max(1, high - start)) for row in rows[:MOST_WATERMARKS])
    axis = tag("p", tag("span", clock(start)), tag("span", clock(high)), class_="axis") if times else None
    return join([tag("ul", listed, class_="marks"), axis])


def _watermark(row: WatermarkStatus, start: int, length: int) -> Markup:
    time = milliseconds_of(row.value)
    width = 0.0 if time is None else max(0.5, (time - start) / length * 100)
    value = "no row yet" if row.value is None else clock(time) if time is not None else text(row.value)
    partition = f" [{cut(row.partition, 40)}]" if row.partition not in ("", "0") else ""
    notes = [
        f"delay {row.delay}" if row.delay else None,
        f"idle since {text(row.idle_since)}" if row.idle_since else None,
    ]
    bar = tag("svg", tag("rect", width=width, height=8), viewBox="0 0 100 8", preserveAspectRatio="none", class_="bar")
    blocks = (" blocks ", [[name_of(view), " "] for view in row.blocks[:5]])
    state = " blocking" if row.blocks else " idle" if row.idle_since else ""
    return tag(
        "li",
        tag("span", name_of(f"{row.source}.{row.column}{partition}"), class_="mark-name"),
        tag("span", value, class_="mark-value"),
        bar,
        tag("small", ", ".join(note for note in notes if note), tag("em", blocks) if row.blocks else None),
        class_=f"mark{state}",
    )


def error_panel(fact: str, detail: str | None, hint: str | None, code: str | None = None) -> Markup:
    """Return an error: fact, detail and hint."""
    lines = [
        tag("b", fact),
        tag("span", "Detail: ", detail) if detail else None,
        tag("span", "Hint: ", hint) if hint else None,
    ]
    return tag("div", lines, tag("small", escaped(code)) if code else None, class_="error", role="alert")

"""The page itself: one HTML document with a place for each panel."""

from __future__ import annotations

from collections.abc import Mapping

from rejoinder.web.panels.markup import Markup, join, tag

EXAMPLE = "SELECT …, EXPLAIN SELECT …, WHY view WHERE …, WHY NOT view WHERE …, SHOW VIEWS"


def page(panels: Mapping[str, Markup]) -> Markup:
    """Return the document with its panels filled in."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", "Rejoinder"),
        tag("link", rel="stylesheet", href="/static/page.css"),
        tag("script", src="/static/page.js", defer=True),
    )
    body = tag("body", _header(panels), _main(panels))
    return Markup(f"<!doctype html>\n{tag('html', head, body, lang='en')}")


def _header(panels: Mapping[str, Markup]) -> Markup:
    return tag(
        "header",
        tag("h1", "Rejoinder"),
        tag("section", panels.get("head"), id="head"),
        tag("span", "connecting", id="live-state", role="status"),
        tag("button", "Theme", type="button", id="theme", title="Light, dark, or as the system"),
    )


def _main(panels: Mapping[str, Markup]) -> Markup:
    legend = (tag("span", kind, class_=f"key kind-{kind}") for kind in ("source", "arrangement", "view", "sink"))
    hint = tag("p", "Choose a node to see what its changes reach, its plan and its rows.", class_="empty")
    flow = [
        tag("h2", "Flow ", tag("span", legend, class_="legend")),
        tag("section", panels.get("graph"), id="graph", class_="wide"),
    ]
    return tag(
        "main",
        tag("div", flow, class_="panel flow"),
        tag("aside", hint, id="node", class_="panel node-panel", aria_live="polite"),
        tag("div", tag("h2", "Epochs"), tag("section", panels.get("epochs"), id="epochs"), class_="panel epochs"),
        tag(
            "div",
            tag("h2", "Watermarks"),
            tag("section", panels.get("watermarks"), id="watermarks"),
            class_="panel marks-panel",
        ),
        tag("div", tag("h2", "Views"), tag("section", panels.get("views"), id="views"), class_="panel views"),
        tag(
            "div",
            tag("p", "Choose a view to see its rows at any epoch.", class_="empty"),
            id="view",
            class_="panel view",
        ),
        tag("div", _query_box(), tag("div", id="answer", aria_live="polite"), class_="panel query"),
    )


def _query_box() -> Markup:
    area = tag("textarea", id="sql", rows="3", spellcheck="false", placeholder=EXAMPLE, aria_label="SQL")
    run = tag("button", "Run", type="button", id="run", class_="primary", title="Ctrl + Enter")
    explain = tag("button", "Explain", type="button", id="explain")
    return join([tag("h2", "Query ", tag("small", "read-only")), area, tag("p", run, " ", explain)])

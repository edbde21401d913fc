"""The graph of a flow as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rejoinder.web.graph import Graph, Node
from rejoinder.web.panels.layout import HEIGHT, WIDTH, Layout, Point, layout
from rejoinder.web.panels.markup import Markup, cut, escaped, tag

MARGIN = 14
FITS = 1400
"""A picture up to this width is scaled to its panel; a wider one is scrolled."""
LABEL, DETAIL = 21, 31
"""The longest label and detail of a node, in characters."""


def picture(graph: Graph, details: Mapping[str, str]) -> Markup:
    """Draw a graph. `details` are the second lines of nodes, by key."""
    placed = layout(list(graph.nodes), graph.edges, [key for key, node in graph.nodes.items() if node.kind == "sink"])
    width, height = placed.width + 2 * MARGIN, placed.height + 2 * MARGIN
    return tag(
        "svg",
        tag("g", (_edge(edge, placed) for edge in placed.routes), class_="edges"),
        tag("g", (_node(node, placed, details.get(key, "")) for key, node in graph.nodes.items()), class_="nodes"),
        class_=f"graph{' fits' if width <= FITS else ''}",
        viewBox=f"{-MARGIN} {-MARGIN} {width:.0f} {height:.0f}",
        width=round(width),
        height=round(height),
        role="group",
        aria_label="Graph of the flow: sources, arrangements, views and sinks",
    )


def _edge(edge: tuple[str, str], placed: Layout) -> Markup:
    return tag("path", d=_curve(placed.routes[edge]), data_from=edge[0], data_to=edge[1])


def _curve(points: Sequence[Point]) -> str:
    """Return the data of a path that leaves and enters every column horizontally."""
    parts = [f"M{points[0].x:.0f},{points[0].y:.1f}"]
    for number, (start, end) in enumerate(pairwise(points)):
        if number % 2:
            parts.append(f"H{end.x:.0f}")
        else:
            middle = (start.x + end.x) / 2
            parts.append(f"C{middle:.0f},{start.y:.1f} {middle:.0f},{end.y:.1f} {end.x:.0f},{end.y:.1f}")
    return "".join(parts)


def _node(node: Node, placed: Layout, detail: str) -> Markup:
    place = placed.places[node.key]
    shared = len(node.users) if node.is_shared else 0
    title = f"{node.kind} {cut(node.label)}" + (f", shared by {', '.join(node.users[:20])}" if shared else "")
    radius = {"source": HEIGHT / 2, "arrangement": 3, "view": 10, "sink": HEIGHT / 2}[node.kind]
    badge = (
        tag("circle", cx=float(WIDTH - 2), cy=2.0, r=11.0, class_="badge"),
        tag("text", f"×{shared}", x=float(WIDTH - 2), y=6.0, class_="badge-text"),
    )
    return tag(
        "g",
        tag("title", title),
        tag("rect", width=WIDTH, height=HEIGHT, rx=float(radius)),
        tag("text", cut(node.label, LABEL), x=14.0, y=19.0, class_="label"),
        tag("text", cut(detail, DETAIL), x=14.0, y=36.0, class_="detail"),
        badge if shared else (),
        class_=f"node {node.kind}{' shared' if shared else ''}",
        transform=f"translate({place.x:.0f},{place.y:.1f})",
        data_key=node.key,
        tabindex="0",
        role="button",
        aria_label=escaped(f"{title}; {detail}"),
    )

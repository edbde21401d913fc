"""The layered layout: order, no overlap, cycles, and its cost."""

from __future__ import annotations

import time
from itertools import combinations

from rejoinder.web.panels.layout import HEIGHT, WIDTH, layout


def test_every_node_is_after_those_that_feed_it() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")]
    placed = layout(["a", "b", "c", "d"], edges)
    assert all(placed.places[start].x < placed.places[end].x for start, end in edges)
    assert set(placed.routes) == set(edges)


def test_nodes_do_not_overlap() -> None:
    nodes = [f"n{number}" for number in range(60)]
    edges = [(f"n{a}", f"n{b}") for a, b in combinations(range(60), 2) if (a * 7 + b) % 11 == 0]
    placed = layout(nodes, edges)
    for first, second in combinations(placed.places.values(), 2):
        assert abs(first.x - second.x) >= WIDTH or abs(first.y - second.y) >= HEIGHT


def test_an_edge_that_closes_a_cycle_is_left_out() -> None:
    placed = layout(["a", "b"], [("a", "b"), ("b", "a")])
    assert list(placed.routes) == [("a", "b")]


def test_an_empty_graph_has_no_size() -> None:
    assert layout([], []).height == 0


def test_two_hundred_views_take_less_than_a_second() -> None:
    views = [f"v{number}" for number in range(200)]
    arrangements = [f"a{number}" for number in range(60)]
    edges = [(arrangements[(at * 7 + more) % 60], view) for at, view in enumerate(views) for more in range(4)]
    start = time.process_time()
    layout([*arrangements, *views], edges)
    assert time.process_time() - start < 1

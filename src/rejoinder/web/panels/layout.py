"""A layered layout of a directed graph: columns in the direction of the changes, few crossings, no library.

Cost: O(sweeps · edges · log nodes). A graph of 200 views takes some tens of milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

WIDTH, HEIGHT = 204, 46
COLUMN_GAP, ROW_GAP, LANE = 64, 14, 12
SWEEPS = 8


class Point(NamedTuple):
    """A place in pixels."""

    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    """The top left corner of each node, the points of each edge, and the size of the whole."""

    places: Mapping[str, Point]
    routes: Mapping[tuple[str, str], tuple[Point, ...]]
    width: float
    height: float


@dataclass(frozen=True)
class _Bend:
    """A place of a long edge in a column between its ends."""

    edge: tuple[str, str]
    column: int


_Item = str | _Bend


def layout(nodes: Sequence[str], edges: Iterable[tuple[str, str]], last: Iterable[str] = ()) -> Layout:
    """Place nodes in columns, each after all that feed it. Nodes in `last` share the last column."""
    forward = _without_cycles(nodes, list(edges))
    columns = _columns(nodes, forward)
    end = max(columns.values(), default=0)
    columns |= dict.fromkeys((node for node in last if node in columns), end)
    chains = {edge: _chain(edge, columns) for edge in forward}
    rows: list[list[_Item]] = [[] for _ in range(end + 1)]
    for node in nodes:
        rows[columns[node]].append(node)
    for chain in chains.values():
        for item in chain[1:-1]:
            assert isinstance(item, _Bend)
            rows[item.column].append(item)
    pairs = [pair for chain in chains.values() for pair in pairwise(chain)]
    _reduce_crossings(rows, pairs)
    middles = _middles(rows, pairs)
    places = {
        item: Point(column * (WIDTH + COLUMN_GAP), middles[item] - HEIGHT / 2)
        for column, items in enumerate(rows)
        for item in items
        if isinstance(item, str)
    }
    routes = {edge: _route(chain, places, middles) for edge, chain in chains.items()}
    height = max((middles[item] + _size(item) / 2 for items in rows for item in items), default=0)
    return Layout(places, routes, len(rows) * (WIDTH + COLUMN_GAP) - COLUMN_GAP, height)


def _without_cycles(nodes: Sequence[str], edges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the edges without those that close a cycle."""
    following: dict[str, list[str]] = defaultdict(list)
    for start, end in edges:
        following[start].append(end)
    done: set[str] = set()
    kept: list[tuple[str, str]] = []
    for root in nodes:
        open_nodes, stack = {root}, [(root, iter(following[root]))]
        while stack and root not in done:
            node, ends = stack[-1]
            following_node = next(ends, None)
            if following_node is None:
                stack.pop()
                open_nodes.discard(node)
                done.add(node)
            elif following_node not in open_nodes:
                end = following_node
                kept.append((node, end))
                if end not in done:
                    open_nodes.add(end)
                    stack.append((end, iter(following[end])))
    return kept


def _columns(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the column of each node: the length of the longest way to it."""
    columns, left = dict.fromkeys(nodes, 0), dict.fromkeys(nodes, 0)
    following: dict[str, list[str]] = defaultdict(list)
    for start, end in edges:
        following[start].append(end)
        left[end] += 1
    ready = [node for node in nodes if not left[node]]
    for node in ready:
        for end in following[node]:
            columns[end] = max(columns[end], columns[node] + 1)
            left[end] -= 1
            if not left[end]:
                ready.append(end)
    return columns


def _chain(edge: tuple[str, str], columns: Mapping[str, int]) -> list[_Item]:
    start, end = edge
    return [start, *(_Bend(edge, column) for column in range(columns[start] + 1, columns[end])), end]


def _reduce_crossings(rows: list[list[_Item]], pairs: Sequence[tuple[_Item, _Item]]) -> None:
    """Order the items of each column by the mean place of their neighbours, back and forth."""
    before, after = _neighbours(pairs)
    for sweep in range(SWEEPS):
        numbers = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        linked = before if sweep % 2 == 0 else after
        for number in numbers:
            other = rows[number - 1 if sweep % 2 == 0 else number + 1]
            place = {item: at / max(1, len(other)) for at, item in enumerate(other)}
            own = {item: at / max(1, len(rows[number])) for at, item in enumerate(rows[number])}

            means = {item: _mean([place[near] for near in linked[item] if near in place], own[item]) for item in own}
            rows[number].sort(key=means.__getitem__)


def _neighbours(pairs: Sequence[tuple[_Item, _Item]]) -> tuple[dict[_Item, list[_Item]], dict[_Item, list[_Item]]]:
    before: dict[_Item, list[_Item]] = defaultdict(list)
    after: dict[_Item, list[_Item]] = defaultdict(list)
    for start, end in pairs:
        after[start].append(end)
        before[end].append(start)
    return before, after


def _size(item: _Item) -> float:
    return HEIGHT if isinstance(item, str) else LANE


def _middles(rows: list[list[_Item]], pairs: Sequence[tuple[_Item, _Item]]) -> dict[_Item, float]:
    """Return the height of each item: near its neighbours, without overlaps, in the order of its column."""
    before, after = _neighbours(pairs)
    middles: dict[_Item, float] = {}
    for items in rows:
        top = 0.0
        for item in items:
            middles[item] = top + _size(item) / 2
            top += _size(item) + ROW_GAP
    for sweep in range(SWEEPS):
        linked = before if sweep % 2 == 0 else after
        for items in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [_mean([middles[near] for near in linked[item]], middles[item]) for item in items]
            _spread(items, wanted, middles)
    lowest = min((middles[item] - _size(item) / 2 for items in rows for item in items), default=0)
    return {item: middle - lowest for item, middle in middles.items()}


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _spread(items: Sequence[_Item], wanted: Sequence[float], middles: dict[_Item, float]) -> None:
    """Place items at the wanted heights as far as their sizes allow: groups that overlap share their mean."""
    groups: list[tuple[float, list[_Item], float]] = []  # sum of wanted tops, items, size
    for item, want in zip(items, wanted, strict=True):
        group = (want - _size(item) / 2, [item], _size(item) + ROW_GAP)
        while groups and groups[-1][0] / len(groups[-1][1]) + groups[-1][2] > group[0] / len(group[1]):
            tops, members, size = groups.pop()
            group = (tops + group[0] - size * len(group[1]), [*members, *group[1]], size + group[2])
        groups.append(group)
    for tops, members, _ in groups:
        top = tops / len(members)
        for item in members:
            middles[item] = top + _size(item) / 2
            top += _size(item) + ROW_GAP


def _route(chain: Sequence[_Item], places: Mapping[str, Point], middles: Mapping[_Item, float]) -> tuple[Point, ...]:
    points: list[Point] = []
    for item in chain:
        if isinstance(item, _Bend):
            left = item.column * (WIDTH + COLUMN_GAP)
            points += [Point(left, middles[item]), Point(left + WIDTH, middles[item])]
        else:
            side = 0 if points else WIDTH
            points.append(Point(places[item].x + side, middles[item]))
    return tuple(points)

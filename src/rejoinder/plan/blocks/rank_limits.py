"""Conditions on ranks as limits of window functions: a query for the first rows reads and keeps only those.

    SELECT … QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) <= 3

The condition stays where it is, so a limit changes which rows are computed, never the result. It reaches functions
below projections and other conditions, if all functions of the same window look back only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call, Cast, Column, Literal
from rejoinder.ir.expressions.nodes import Node as ExpressionNode
from rejoinder.ir.logical import Filter, Node, Predicate, Project, WindowCalls

_MIRRORED = {"<=": ">=", "<": ">", "=": "=", ">=": "<=", ">": "<"}
_MOST = {"<=": 0, "<": -1, "=": 0}


def with_rank_limits(node: Filter) -> Filter:
    """The same rows, of which only those are computed that the conditions on ranks let through."""
    limits: dict[str, int] = {}
    for predicate in node.predicates:
        found = _limit(predicate)
        if found is not None:
            name, most = found
            limits[name] = min(most, limits.get(name, most))
    return replace(node, input=_limited(node.input, limits)) if limits else node


def _limit(predicate: Predicate) -> tuple[str, int] | None:
    """The column that a condition limits, and its largest value."""
    node = predicate.expression.node
    if not isinstance(node, Call) or node.operation.name not in _MIRRORED:
        return None
    sign, (left, right) = node.operation.name, node.parts
    if isinstance(left, Literal):
        sign, left, right = _MIRRORED[sign], right, left
    name = _ranked(left)
    if name is None or sign not in _MOST or not isinstance(right, Literal) or not isinstance(right.value, int):
        return None
    return name, right.value + _MOST[sign]


def _ranked(node: ExpressionNode) -> str | None:
    """The column that an expression is as a number, whatever its width."""
    while not isinstance(node, Column):
        is_rank = isinstance(node, Call) and node.operation.name == "rank"
        kinds = (node.type, *(part.type for part in node.parts))
        if not is_rank and not (isinstance(node, Cast) and all(map(pa.types.is_integer, kinds))):
            return None
        node = node.parts[0]
    return node.name


def _limited(node: Node, limits: Mapping[str, int]) -> Node:
    match node:
        case Filter():
            return replace(node, input=_limited(node.input, limits))
        case Project():
            names = {i: _ranked(e.node) for i, e in node.outputs if i in limits}
            below = {name: limits[i] for i, name in names.items() if name is not None}
            return replace(node, input=_limited(node.input, below)) if below else node
        case WindowCalls():
            ranks = {i: limits[i] for i, call in node.calls if i in limits and call.is_rank}
            if not ranks or not all(call.looks_back for _, call in node.calls):
                return node
            name = min(ranks, key=lambda i: ranks[i])
            most = max(ranks[name], 0)
            if node.limit is not None and node.limit[1] <= most:
                return node
            return replace(node, limit=(name, most))
        case _:
            return node

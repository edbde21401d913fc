"""Bounds of a block: how far the times of its inputs can be apart in one row of the result, and what that allows.

If a >= b - c holds in every row of the result, and no change with b below some frontier comes any more, then a row of
a's input with a < frontier - c can match no more: it may be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable

from rejoinder.plan.logical import Predicate
from rejoinder.plan.normal import Block

Distances = dict[tuple[str, str], int]


def direct_bounds(predicates: Iterable[Predicate]) -> Distances:
    """The smallest slack for each (later, earlier) pair of columns that some condition gives."""
    result: Distances = {}
    for predicate in predicates:
        for bound in predicate.bounds:
            pair = bound.later.columns[0], bound.earlier.columns[0]
            result[pair] = min(bound.slack, result.get(pair, bound.slack))
    return result


def block_bounds(block: Block) -> Distances:
    """All bounds of a block: what its conditions say, and what follows from them over other inputs.

    From a >= b - c and b >= d - e follows a >= d - (c + e). The smallest slack wins.
    """
    known = direct_bounds([*block.predicates, *(p for each in block.inputs for p in each.on)])
    columns = sorted({column for pair in known for column in pair})
    for middle in columns:
        for later in columns:
            first = known.get((later, middle))
            if first is None or later == middle:
                continue
            for earlier in columns:
                second = known.get((middle, earlier))
                if second is not None and earlier not in (later, middle):
                    pair = later, earlier
                    known[pair] = min(first + second, known.get(pair, first + second))
    return {pair: slack for pair, slack in known.items() if _input(pair[0]) != _input(pair[1])}


def _input(column: str) -> str:
    return column.split(".", 1)[0]

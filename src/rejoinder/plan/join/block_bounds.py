"""Bounds of a block: how far apart the times of its inputs can be in one row of the result.

If a >= b - c holds in every row of the result, and no change with b below some frontier is expected, then a row of a's
input with a < frontier - c cannot match any more: it expires. Instead of b - c, any monotone function of b is possible,
such as the start of b's window.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from rejoinder.ir.expressions.monotone import Monotone, Step, simplified
from rejoinder.ir.logical import Predicate

Steps = tuple[Step, ...]
Distances = dict[tuple[str, str], Steps]


def direct_bounds(predicates: Iterable[Predicate]) -> dict[tuple[str, str], int]:
    """Return the smallest slack for each (later, earlier) pair of columns, from single conditions."""
    found = {pair: slack_of(steps) for pair, steps in tightest(predicates).items()}
    return {pair: slack for pair, slack in found.items() if slack is not None}


def slack_of(steps: Steps) -> int | None:
    """Return how far the later of two columns can be behind the earlier one; None if their units differ."""
    span = Monotone("", steps).span
    return None if span is None else -span[0]


def all_bounds(predicates: Iterable[Predicate], within: Distances | None = None) -> Distances:
    """Return the bounds of all conditions together, and those that follow from them transitively.

    From a >= b - c and b >= d - e follows a >= d - (c + e). The smallest slack wins. `within` has bounds between
    columns of one input.
    """
    known = tightest(predicates)
    for pair, steps in (within or {}).items():
        _note(known, pair, steps)
    columns = sorted({column for pair in known for column in pair})
    for middle in columns:
        firsts = [(later, known[later, middle]) for later in columns if later != middle and (later, middle) in known]
        seconds = [
            (earlier, known[middle, earlier]) for earlier in columns if earlier != middle and (middle, earlier) in known
        ]
        for later, first in firsts:
            for earlier, second in seconds:
                steps = _simplified(second + first)
                if earlier != later and known.get((later, earlier)) != steps:
                    _note(known, (later, earlier), steps)
    return known


def looser(one: Steps, other: Steps) -> Steps | None:
    """Return the bound that holds wherever one of two holds; None if they cannot be compared."""
    first, second = Monotone("", one).span, Monotone("", other).span
    if first is None or second is None:
        return one if one == other else None
    return min((first, one), (second, other), key=lambda each: each[0])[1]


def tightest(predicates: Iterable[Predicate]) -> Distances:
    """Return the tightest bound for each (later, earlier) pair of columns, from single conditions."""
    result: Distances = {}
    for predicate in predicates:
        for bound in predicate.bounds:
            pair = bound.later.columns[0], bound.earlier.columns[0]
            _note(result, pair, bound.steps)
    return result


def _note(known: Distances, pair: tuple[str, str], steps: Steps) -> None:
    """Keep the tighter of two bounds: the one with the smaller slack."""
    steps = _simplified(steps)
    spans = [_span(each) for each in (steps, known.get(pair, steps))]
    if spans[0] is None or spans[1] is None or spans[0] >= spans[1]:
        known[pair] = steps


# A join of n inputs compares n³ bounds, of which few differ.
_simplified = lru_cache(maxsize=4096)(simplified)


@lru_cache(maxsize=4096)
def _span(steps: Steps) -> tuple[int, int] | None:
    return Monotone("", steps).span
